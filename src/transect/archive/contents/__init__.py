"""The bytes of products: tables, clouds, images, texts, and files that are kept as they are."""
