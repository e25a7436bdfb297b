"""How good a height map is: against a reference map, once it is put where it fits best."""

from .errors import NO_SHIFT, MapErrors, map_errors

__all__ = ["NO_SHIFT", "MapErrors", "map_errors"]
