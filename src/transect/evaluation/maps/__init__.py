"""How good a height map is: against a reference map, once it is put where it fits best."""

from .errors import NO_SHIFT, MapErrors, map_errors
from .walls import Walls, count_double_walls

__all__ = ["NO_SHIFT", "MapErrors", "Walls", "count_double_walls", "map_errors"]
