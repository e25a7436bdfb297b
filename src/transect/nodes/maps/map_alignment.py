"""One height map laid on another of the same ground."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from transect.algorithms.coregistration.alignment import Alignment, align_maps
from transect.algorithms.coregistration.resampling import lay_map
from transect.engine import Node, outputs, param
from transect.engine.ports import Shape, Unit
from transect.errors import GeometryError
from transect.geometry import se3
from transect.types import GridMap, Pose


@outputs
class MapAligned:
    """Where the moved map lies.

    Attributes
    ----------
    transform : Pose
        Of the moved map's frame in the reference's; of maps with a reference system, in metres from the
        middle of the reference. Without its scale.
    success : bool
        Whether that is believed.
    covariance : (6, 6)
        Of that pose: m^2, then rad^2, in the reference's axes.
    scale : float
        By which lengths of the moved map are multiplied.
    overlap : float
        Share of the moved map's known cells that lie on known ground.
    residual : float
        Standard deviation of the height differences that are left.
    aligned : GridMap
        The moved map on cells of the reference: `elevation` and `difference`.
    """

    transform: Pose | None = None
    success: bool | None = None
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    scale: float | None = None
    overlap: float | None = None
    residual: Annotated[float | None, Unit("m")] = None
    aligned: GridMap | None = None


class MapAlignment(Node):
    """Lays a height map on another: shift, turn, tilt, and scale if asked, with covariance.

    Refused where the maps do not overlap, are not alike, or where the ground is too flat to tell.
    """

    reach: float = param(0.0, ge=0, unit="m", doc="how far the map may be off; 0: a quarter of its size")
    turn: float = param(15.0, ge=0, le=180, unit="deg", doc="how far it may be turned about the vertical")
    scaled: bool = param(False, doc="whether lengths of the map may be wrong by a factor")
    tilted: bool = param(True, doc="whether the map may lean")
    least_overlap: float = param(
        0.3, gt=0, le=1, doc="smallest share of the map's cells that must lie on known ground"
    )

    def process(self, reference: GridMap, moved: GridMap) -> MapAligned | None:
        try:
            found = align_maps(
                reference,
                moved,
                reach=self.reach or None,
                turn=float(np.radians(self.turn)),
                scale=self.scaled,
                tilt=self.tilted,
                overlap=self.least_overlap,
            )
        except GeometryError as error:
            self.ctx.skip(error.what)
            return MapAligned(success=False)
        return MapAligned(
            transform=pose_of(found, self.ctx.time, reference.frame, moved.frame),
            success=True,
            covariance=found.covariance_at(np.zeros(3))[:6, :6],
            scale=found.placement.scale,
            overlap=found.overlap,
            residual=found.fit.deviation,
            aligned=lay_map(reference, moved, found),
        )


def pose_of(found: Alignment, t_ns: int, frame: str, child: str) -> Pose:
    """Return where the frame of a map lies in the reference's, without its scale."""
    matrix = found.T_reference_map.copy()
    matrix[:3, :3] = found.placement.rotation
    turned, place = se3.to_quaternion(matrix)
    return Pose(place, turned, t_ns, frame, child)
