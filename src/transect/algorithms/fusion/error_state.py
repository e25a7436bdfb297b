"""An error-state Kalman filter of a body on the ground: its state, how it moves on, how it is corrected.

The state is held as it is (rotations as matrices); the covariance is that of a small error of it. Attitude
errors are rotation vectors in the axes of the map: ``R_true = exp(e) R``. All in SI and radians.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.rotations import matrix_from_rotation_vector as exp
from transect.geometry.rotations import skew

POSITION, ATTITUDE, VELOCITY = slice(0, 3), slice(3, 6), slice(6, 9)
GYRO_BIAS, FORCE_BIAS = slice(9, 12), slice(12, 15)
HEADING, GYRO_HEADING = 5, 11
SCALE, SLIP, STEER, SIDE, BEND = 15, 16, 17, 18, 19
FIX_ERROR = slice(20, 23)
CLONES = ((slice(23, 26), slice(26, 29)), (slice(29, 32), slice(32, 35)))
"""Where the last step of wheels or an odometry began, and the frame in which a `motion` measures."""
SIZE = 35
POSE = slice(0, 6)
UP = np.array([0.0, 0.0, 1.0])
_EYE = np.eye(SIZE)


@dataclass(frozen=True)
class ProcessNoise:
    """How uncertain motion is; the parameters of the node `ErrorStateFilter` say what each number means."""

    gyro_walk: float = 1e-5  # rad/s/sqrt(s)
    force_walk: float = 1e-4  # m/s2/sqrt(s)
    slip: float = 0.03
    slip_length: float = 2.0  # m
    unsteady: float = 1.0
    scale_walk: float = 1e-3  # 1/sqrt(m)
    steer_walk: float = 5e-3  # 1/sqrt(m)
    side_walk: float = 2e-3  # rad/sqrt(m)
    bend_walk: float = 5e-4  # rad/m/sqrt(m)
    along: float = 0.01  # m/sqrt(m)
    across: float = 0.01  # m/sqrt(m)
    up: float = 0.03  # m/sqrt(m)
    hill: float = 0.1  # m/sqrt(m)
    heading: float = 5e-3  # rad/sqrt(m)
    skid: float = 0.1  # rad/sqrt(rad)
    speed_floor: float = 0.05  # m/sqrt(s)
    turn_floor: float = 5e-3  # rad/sqrt(s)
    fix_seconds: float = 60.0  # s
    gravity: float = 9.80665  # m/s2
    drift: float = 0.01  # m/sqrt(m)
    drift_turn: float = 1e-3  # rad/sqrt(m)

    @property
    def motion_drift(self) -> tuple[float, float]:
        """Of a visual or lidar odometry: m/sqrt(m) and rad/sqrt(m)."""
        return self.drift, self.drift_turn


@dataclass(eq=False)
class State:
    """The state and its covariance.

    Attributes
    ----------
    t_ns : int
    p, v : (3,) array
        Position and velocity in the map.
    rotation : (3, 3) array
        Takes vectors of the body to the map.
    gyro_bias, force_bias : (3,) array
        In the body.
    scale, slip : float
        ``1 + scale + slip`` times what wheels say is what the body moved; scale hardly changes, slip does.
    unsteady : float
        What slip has beyond its usual sigma since wheels were last doubted; see `doubt_wheels`.
    steer : float
        ``1 + scale + slip + steer`` times what wheels turned is what the body turned; it hardly changes.
    side : float
        Rad to the left by which the body moves beside its heading.
    bend : float
        Rad per metre by which it turns more to the left than its wheels say.
    fix_error : (3,) array
        Of satellite fixes, as far as it stays from one to the next.
    clones : list of (t_ns, p, R) or None
    covariance : (35, 35) array
    """

    t_ns: int
    p: Floats
    rotation: Floats
    v: Floats
    covariance: Floats
    gyro_bias: Floats = field(default_factory=lambda: np.zeros(3))
    force_bias: Floats = field(default_factory=lambda: np.zeros(3))
    scale: float = 0.0
    slip: float = 0.0
    unsteady: float = 0.0
    steer: float = 0.0
    side: float = 0.0
    bend: float = 0.0
    fix_error: Floats = field(default_factory=lambda: np.zeros(3))
    clones: list[tuple[int, Floats, Floats] | None] = field(default_factory=lambda: [None, None])

    @property
    def pose_covariance(self) -> Floats:
        """Covariance (6, 6) of position (m) and rotation vector (rad), both in the map."""
        return self.covariance[POSE, POSE].copy()

    def copy(self) -> State:
        """Return a state that moves on by itself: arrays are never changed in place but the covariance."""
        return replace(self, covariance=self.covariance.copy(), clones=list(self.clones))

    def clone(self, slot: int) -> None:
        """Remember this pose, for the next step of a dead reckoning."""
        where, how = CLONES[slot]
        J = _EYE.copy()
        J[where], J[how] = 0.0, 0.0
        J[where, POSITION] = J[how, ATTITUDE] = np.eye(3)
        self.covariance = J @ self.covariance @ J.T
        self.clones[slot] = self.t_ns, self.p.copy(), self.rotation.copy()

    def add_error(self, e: Floats) -> None:
        """Add an error (35,) to the state, and to its clones."""
        self.p = self.p + e[POSITION]
        self.v = self.v + e[VELOCITY]
        self.rotation = exp(e[ATTITUDE]) @ self.rotation
        self.gyro_bias = self.gyro_bias + e[GYRO_BIAS]
        self.force_bias = self.force_bias + e[FORCE_BIAS]
        self.scale += float(e[SCALE])
        self.slip += float(e[SLIP])
        self.steer += float(e[STEER])
        self.side += float(e[SIDE])
        self.bend += float(e[BEND])
        self.fix_error = self.fix_error + e[FIX_ERROR]
        for slot, kept in enumerate(self.clones):
            if kept is not None:
                where, how = CLONES[slot]
                self.clones[slot] = kept[0], kept[1] + e[where], exp(e[how]) @ kept[2]


# Moving on


def move_inertially(
    x: State, seconds: float, force: Floats, rate: Floats, densities: tuple[float, float], noise: ProcessNoise
) -> None:
    """Strapdown mechanisation over a short time.

    Parameters
    ----------
    force, rate : (3,)
        Mean specific force and angular velocity over that time, in the body.
    densities : (float, float)
        White noise of the two: m/s2/sqrt(Hz), rad/s/sqrt(Hz).
    """
    half = exp((rate - x.gyro_bias) * (seconds / 2))
    R_middle = x.rotation @ half
    pull = R_middle @ (force - x.force_bias)
    acceleration = pull - noise.gravity * UP
    F = _EYE.copy()
    F[POSITION, VELOCITY] = np.eye(3) * seconds
    F[ATTITUDE, GYRO_BIAS] = -R_middle * seconds
    F[VELOCITY, ATTITUDE] = -skew(pull) * seconds
    F[VELOCITY, FORCE_BIAS] = -R_middle * seconds
    x.covariance = F @ x.covariance @ F.T
    x.p = x.p + x.v * seconds + acceleration * (seconds**2 / 2)
    x.v = x.v + acceleration * seconds
    x.rotation = R_middle @ half
    add_variance(x, VELOCITY, densities[0] ** 2 * seconds)
    add_variance(x, ATTITUDE, densities[1] ** 2 * seconds)
    add_variance(x, GYRO_BIAS, noise.gyro_walk**2 * seconds)
    add_variance(x, FORCE_BIAS, noise.force_walk**2 * seconds)


def age_motion(x: State, slot: int, distance: float, drift: tuple[float, float]) -> None:
    """Let the frame in which a visual or lidar odometry measures drift with a distance in metres.

    It slips where the body is (adjoint), not about its origin: that may be far away.

    Parameters
    ----------
    drift : (float, float)
        m/sqrt(m) and rad/sqrt(m).
    """
    kept = x.clones[slot]
    assert kept is not None
    where, how = CLONES[slot]
    G = np.zeros((6, 6))
    G[:3, :3] = G[3:, 3:] = np.eye(3)
    G[:3, 3:] = -skew(kept[1] - x.p)
    noise = distance * np.array([drift[0]] * 3 + [drift[1]] * 3) ** 2
    block = slice(where.start, how.stop)
    x.covariance[block, block] += G @ np.diag(noise) @ G.T


def age_fixes(x: State, seconds: float, variance: Floats, correlation_s: float) -> None:
    """Let the error that fixes have in common change (a first-order Gauss-Markov process)."""
    kept = float(np.exp(-seconds / correlation_s))
    x.fix_error = x.fix_error * kept
    x.covariance[FIX_ERROR, :] *= kept
    x.covariance[:, FIX_ERROR] *= kept
    x.covariance[FIX_ERROR, FIX_ERROR] += np.diag(variance) * (1 - kept**2)


def add_variance(x: State, part: slice, variance: float) -> None:
    """Make a part of the state less certain."""
    for i in range(part.start, part.stop):
        x.covariance[i, i] += variance


def doubt(x: State, place: float, heading: float, velocity: float) -> None:
    """Make position (m2), heading (rad2) and velocity (m2/s2) less certain: places contradict them."""
    add_variance(x, POSITION, place)
    add_variance(x, VELOCITY, velocity)
    x.covariance[HEADING, HEADING] += heading


def doubt_height(x: State, variance: float) -> None:
    """Make the height (m2) less certain, and what fixes err of it: they led it astray."""
    for i in (POSITION.start + 2, FIX_ERROR.start + 2):
        x.covariance[i, i] += variance


# Measurements: what is left of each, and how it depends on the state's error


@dataclass(frozen=True, eq=False)
class Residual:
    """What a measurement says beyond the state: ``r = H e + noise`` with the covariance `R`."""

    r: Floats
    H: Floats
    R: Floats

    def part(self, rows: list[int]) -> Residual:
        """Return some of its numbers."""
        return Residual(self.r[rows], self.H[rows], self.R[np.ix_(rows, rows)])

    def spread(self, x: State) -> Floats:
        """Covariance (m, m) that the residual should have."""
        S = self.H @ x.covariance @ self.H.T + self.R
        return (S + S.T) / 2


def place_residual(
    x: State, position: Floats, variances: Floats, lever: Floats, with_error: bool
) -> Residual:
    """Residual (3,) of a measured position of a point of the body; `with_error` where fixes err alike."""
    arm = x.rotation @ lever
    H = np.zeros((3, SIZE))
    H[:, POSITION] = np.eye(3)
    H[:, ATTITUDE] = -skew(arm)
    expected = x.p + arm
    if with_error:
        H[:, FIX_ERROR] = np.eye(3)
        expected = expected + x.fix_error
    return Residual(position - expected, H, np.diag(variances))


def correct(x: State, measured: Residual) -> None:
    """Kalman's correction, the covariance in Joseph's form."""
    K = np.linalg.solve(measured.spread(x), measured.H @ x.covariance).T
    x.add_error(K @ measured.r)
    J = _EYE - K @ measured.H
    P = J @ x.covariance @ J.T + K @ measured.R @ K.T
    x.covariance = (P + P.T) / 2
