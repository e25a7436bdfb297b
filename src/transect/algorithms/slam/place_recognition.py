"""Place recognition: the interface between a recogniser of any sensor and a `Mapper`, and their settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.types.places import Observation

from .pose_graph import POSE_GRAPH, PoseGraphSettings


@dataclass(frozen=True, eq=False)
class PosePrior:
    """Predicted pose of a body in the frame of an old keyframe."""

    T_old_new: Floats  # (4, 4)
    covariance: Floats  # (6, 6) of a small motion in the axes of the new body: m, then rad


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop closure, verified by geometry."""

    T_old_new: Floats  # (4, 4) pose of the new body in the frame of the old one
    covariance: Floats  # (6, 6) of a small motion in the axes of the new body: m, then rad
    score: float  # quality of the fit, 0 to 1
    sure: bool = True  # if False, it is no loop closure, but a competing hypothesis to others


@dataclass(frozen=True)
class LoopSettings:
    """Acceptance of verified loops."""

    probability: float = 0.999  # of accepting a true loop in a chi-squared test
    # Position sigma of the graph up to which a loop that agrees with it is accepted without a second one.
    max_lone_sigma_m: float = 10.0
    min_votes: int = 2  # consistent loops of different keyframes that are needed otherwise
    accept_contradictions: bool = True  # whether enough consistent loops override the graph
    max_pending: int = 100  # unconfirmed loops that are stored
    # All loops of a keyframe are rejected if one to another place scores at least this fraction of the best.
    max_second_best_ratio: float = 0.0


@dataclass(frozen=True)
class OdometryGapSettings:
    """Gaps in the odometry: one that is longer than both limits starts a new session."""

    max_gap_s: float = 2.0
    max_periods: int = 20  # median periods of the odometry
    period_samples: int = 50  # from which the period is estimated

    def is_gap(self, gap_s: float, period_s: float) -> bool:
        """Return whether a time between two samples is a gap, for odometry with this period."""
        return gap_s > max(self.max_gap_s, self.max_periods * period_s)


@dataclass(frozen=True)
class MappingSettings:
    """Keyframes, and the search for loops."""

    keyframe_distance_m: float = 0.5
    keyframe_angle_rad: float = 0.3
    search_radius_m: float = 5.0  # distance of keyframes that can observe the same things
    min_loop_path_m: float = 10.0  # path between two keyframes of a loop
    max_candidates: int = 3  # old keyframes that are verified for each new one
    # Sigma of odometry without covariance: fraction of the path, and rad/rad; 10 m count as 1 rad.
    odometry_drift: tuple[float, float] = (0.02, 0.02)
    max_candidates_lost: int = 3  # if the robot is lost, or some candidates are in another component
    # If the search radius is larger, as many candidates are verified as for a lost robot, so that similar
    # places are detected as ambiguous.
    max_sure_radius_m: float = np.inf
    loops: LoopSettings = field(default_factory=LoopSettings)
    omnidirectional: bool = False  # whether an observation is independent of the heading
    search_sigmas: float = 3.0  # search radius around the predicted pose
    rotation_cost_m: float = 2.0  # added to the distance of a candidate per radian of relative rotation
    gaps: OdometryGapSettings = field(default_factory=OdometryGapSettings)
    graph: PoseGraphSettings = POSE_GRAPH


class Recogniser(Protocol):
    """Detects loop closures. All transforms are of the body, not of the sensor."""

    def add(self, k: int, observation: Observation) -> None:
        """Store the observation of keyframe `k`. Numbers increase; redundant keyframes are not added."""
        ...

    def candidates(self, observation: Observation, allowed: Ints) -> Sequence[int]:
        """Return keyframes that may show the same place, the best first.

        Parameters
        ----------
        allowed : (m,) int array
            Keyframes to choose from, the nearest by the graph first.
        """
        ...

    def verify(self, old: int, observation: Observation, prior: PosePrior | None) -> Loop | None:
        """Return the motion from an old keyframe to an observation; None if the geometry does not confirm it.

        Parameters
        ----------
        prior : PosePrior or None
            None if nothing is known, as in another session or for a lost robot.
        """
        ...
