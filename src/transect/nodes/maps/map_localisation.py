"""Where in a large height map a small one fits."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from transect.algorithms.coregistration.localisation import Hypothesis, locate_map
from transect.engine import Node, outputs, param
from transect.engine.ports import Shape
from transect.errors import GeometryError
from transect.types import GridMap, Pose

from .map_alignment import pose_of


@outputs
class MapLocated:
    """Where the map may lie.

    Attributes
    ----------
    transform : Pose
        Of the moved map's frame in the reference's, at the most probable place; of maps with a reference
        system, in metres from the middle of the reference.
    probability : float
        Of that place.
    success : bool
        Whether it is surely there: nearly all of the probability is at one place.
    covariance : (6, 6)
        Of the pose, if that place is the right one: m^2, then rad^2, in the reference's axes.
    hypotheses : (n, 8)
        All places: probability, x, y, z of the map's middle in m, heading in rad, standard deviations of x
        and y in m and of the heading in rad.
    """

    transform: Pose | None = None
    probability: float | None = None
    success: bool | None = None
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    hypotheses: Annotated[np.ndarray, Shape("n", 8)] | None = None


class MapLocalisation(Node):
    """Finds where a rover's own map fits into that of an orbiter or a drone: every shift and turn is tried.

    Refused where the map fits nowhere, or where the ground is too flat to tell.
    """

    east: float = param(0.0, doc="where the map's middle is believed to be, x in the reference's coordinates")
    north: float = param(0.0, doc="the same, y")
    within: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="how far that may be wrong; 0: anywhere on the reference, `east` and `north` unused",
    )
    turn: float = param(180.0, ge=0, le=180, unit="deg", doc="how far the map's heading may be wrong")
    tilted: bool = param(True, doc="whether the map may lean")
    least_overlap: float = param(
        0.6, gt=0, le=1, doc="smallest share of the map's cells that must lie on known ground"
    )

    def process(self, reference: GridMap, moved: GridMap) -> MapLocated | None:
        try:
            found = locate_map(
                reference,
                moved,
                at=(self.east, self.north) if self.within else None,
                within=self.within or np.inf,
                turn=float(np.radians(self.turn)),
                tilt=self.tilted,
                overlap=self.least_overlap,
            )
        except GeometryError as error:
            self.ctx.skip(error.what)
            return MapLocated(success=False)
        best = found.hypotheses[0]
        return MapLocated(
            transform=pose_of(best.alignment, self.ctx.time, reference.frame, moved.frame),
            probability=best.probability,
            success=found.is_sure,
            covariance=best.alignment.covariance_at(np.zeros(3)),
            hypotheses=np.array([list_numbers(each) for each in found.hypotheses]),
        )


def list_numbers(hypothesis: Hypothesis) -> list[float]:
    """Return probability, place of the middle (m), heading (rad), and their deviations: x, y, heading."""
    found = hypothesis.alignment
    place = found.placement.middle + found.placement.shift
    sigma = found.deviations
    return [hypothesis.probability, *place.tolist(), found.placement.heading, *sigma[[0, 1, 5]].tolist()]
