"""The checks, one file each; the name of the file is the name of the check."""
