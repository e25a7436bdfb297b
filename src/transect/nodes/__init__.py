"""The nodes, one file per interface, grouped by role; a file is imported when its interface is named."""
