"""PDS4 archives: identifiers, labels, bundles built of recordings and products, and their validation."""
