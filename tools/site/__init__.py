"""The site: pages that are made from docstrings and lists, and what mkdocs calls to add them."""
