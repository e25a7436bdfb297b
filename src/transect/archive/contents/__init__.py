"""Contents of data files: tables, images, texts, and unmodified files."""
