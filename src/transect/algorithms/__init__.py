"""Algorithms on arrays and dataclasses: a library that knows nothing of files, engine or command line."""
