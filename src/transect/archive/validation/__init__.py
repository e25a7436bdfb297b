"""Whether PDS4 labels, collections and bundles are valid, and what is wrong with those that are not."""
