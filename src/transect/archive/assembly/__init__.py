"""Assembly of bundles from recordings, runs and stored products, as described in a YAML file."""
