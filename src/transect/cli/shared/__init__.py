"""What the verbs share: options, recordings that are opened, tables, progress bars and result tables."""
