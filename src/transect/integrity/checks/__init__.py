"""The checks that come with transect; `transect.manifest` lists them."""
