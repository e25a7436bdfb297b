"""How good a height map is, as it grows."""

from __future__ import annotations

from transect.engine import Latest, Node, outputs, param
from transect.evaluation.maps import map_errors
from transect.types import GridMap


@outputs
class MapQuality:
    """Root mean square and mean difference of heights in metres, and the F-score."""

    rmse: float
    bias: float
    f_score: float


class MapError(Node):
    """A height map against the newest reference map."""

    register: bool = param(True, doc="find the shift that fits best and take it out")
    cells: float = param(1.0, gt=0, doc="distance of the score, in cells of the reference")

    def process(self, map: GridMap, truth: Latest[GridMap]) -> MapQuality:
        errors = map_errors(truth, map, register=self.register, cells=(self.cells,))
        return MapQuality(errors.statistics.rmse, errors.statistics.bias, errors.scores[0].f_score)
