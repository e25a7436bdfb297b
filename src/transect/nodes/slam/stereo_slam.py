"""SLAM by a stereo pair: its odometry, and places that it knows again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.odometry.stereo_rig import StereoRig, stereo_rig_of
from transect.algorithms.odometry.stereo_tracking_methods import GrayPair
from transect.algorithms.slam.mapper import drift_of
from transect.algorithms.slam.mapping_settings import (
    STEREO_TURNING,
    stereo_keyframe_spacing,
    stereo_mapping_settings,
)
from transect.algorithms.slam.stereo_keyframes import see
from transect.algorithms.slam.stereo_recogniser import StereoRecogniser
from transect.algorithms.vision.image_conversion import gray_of
from transect.base.arrays import Floats
from transect.engine import Batch, Latest, Node, Shape, Synced, param
from transect.geometry import se3
from transect.types import Image, NavFix, Pose

from ._session import Placed, Session, check_map

KIND = "VisualSlamStereo"
DRIFT = (0.01, 0.003)
"""What an odometry's own covariance leaves out, as calibration and lens do; see `Manner.drift`."""
BLIND = (0.2, 0.3)
"""The same where it found no motion for a while and went on by its velocity."""
OTHER_CAMERA = 0.02
"""Part by which focal length or baseline may differ from the map's before it is said."""


class StereoSlam(Node):
    """Corrects the odometry of a stereo pair by places that were seen before; or finds it in a map.

    Poses are of the left camera. A keyframe keeps corners with their depth and 256 bits of what they look
    like. Places with many of the same bits are verified by the pose that their points agree on, then believed
    if odometry or another place bears it out (`consistency`).
    """

    features: int = param(600, ge=50, doc="largest number of corners that a keyframe keeps")
    spacing: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="distance between keyframes; 0: a tenth of the depth that the first pair sees",
    )
    turning: float = param(STEREO_TURNING, gt=0, unit="rad", doc="rotation between keyframes")

    def reset(self) -> None:
        self.session: Session | None = None
        self.before: Floats | None = None

    def ready(self) -> None:
        """Refuse a map of another kind of SLAM."""
        check_map(self.ctx, KIND)

    def process(
        self,
        pose: Pose,
        left: Annotated[Image, Synced(0.005)],
        right: Annotated[Image, Synced(0.005)],
        covariance: Annotated[Latest[NDArray[np.float64]], Shape(6, 6)] | None = None,
        success: Batch[bool] = (),
        fix: Batch[NavFix] = (),
    ) -> Placed:
        rig = stereo_rig_of(left, right)
        pair = GrayPair(gray_of(left), gray_of(right), left.valid)
        if self.session is None:
            self.session = self._begin(pair, rig, pose.child)
        for each in fix:
            self.session.add_fix(each)
        T_odom_camera = se3.from_quaternion(pose.orientation, pose.position)
        spread = self._spread(T_odom_camera, covariance, success)
        return self.session.step(
            pose.t_ns,
            T_odom_camera,
            spread,
            lambda: see(pair, rig, self.features),
            success=success,
        )

    def finish(self) -> Placed | None:
        """Return the corrected trajectory and the map."""
        return None if self.session is None else self.session.finish(self.ctx)

    def _begin(self, pair: GrayPair, rig: StereoRig, child: str) -> Session:
        """Begin a map, or a search in one, with keyframes as far apart as the scene is deep."""
        spacing = self.spacing or stereo_keyframe_spacing(see(pair, rig, self.features), rig.baseline)
        manner = stereo_mapping_settings(spacing, self.turning)
        calibration = {"fx": rig.fx, "fy": rig.fy, "cx": rig.cx, "cy": rig.cy, "baseline": rig.baseline}
        self._compare_camera(rig)
        known = self.ctx.map
        standing = known.places.poses if known is not None and not known.extend else None
        return Session(self.ctx, KIND, StereoRecogniser(standing), manner, calibration, child)

    def _spread(self, T: Floats, covariance: Floats | None, success: Sequence[bool]) -> Floats:
        """Return the covariance of the motion since the pose before, with what the odometry does not know."""
        motion = np.eye(4) if self.before is None else se3.invert(self.before) @ T
        self.before = T
        if covariance is None or not all(success):
            return drift_of(motion, BLIND)
        return covariance + drift_of(motion, DRIFT)

    def _compare_camera(self, rig: StereoRig) -> None:
        """Say if the pair is not the one that made the map."""
        known = {} if self.ctx.map is None else self.ctx.map.places.calibration
        for name in ("fx", "baseline"):
            mine, theirs = getattr(rig, name), known.get(name, getattr(rig, name))
            if abs(mine / theirs - 1) > OTHER_CAMERA:
                self.ctx.conclude(
                    f"another camera than the map's, or a wrong calibration: {name} {mine:g}, not {theirs:g}",
                    bad=True,
                )
