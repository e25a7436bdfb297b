"""Bundles made of recordings, runs and stored products, by what a person wrote in a YAML file."""
