"""Nodes that find out how sensors see and how they are mounted."""
