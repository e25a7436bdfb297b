"""Simulated drives through streets of facades, parked cars and poles, as tracked points.

No image is rendered: every point is the intersection of a ray with the street, and pixels have the noise of
Lucas-Kanade tracking. Errors accumulate from image to image, since each one is compared with the previous
one; from the left to the right image they are independent. Some tracks jump, some are lost.

Pixels are projected by OpenCV's camera model, never by the functions under test.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import cv2
import numpy as np

from transect.algorithms.calibration.stereo_information import StereoTracks
from transect.algorithms.odometry.stereo_odometer import MAX_DEPTH_BASELINES, StereoOdometer
from transect.algorithms.odometry.stereo_rig import StereoRig
from transect.algorithms.odometry.stereo_tracking_methods import GrayPair, PairObservation
from transect.geometry import se3
from transect.types import Trajectory

WIDTH_PX, HEIGHT_PX, FOCAL_PX, BASELINE_M = 1226, 370, 707.0, 0.537
"""KITTI's rectified pair."""
K = np.array([[FOCAL_PX, 0.0, 602.0], [0.0, FOCAL_PX, 183.0], [0.0, 0.0, 1.0]])
CAMERA_HEIGHT_M = 1.65
"""Height of the cameras; the world's y axis points down, like that of the cameras."""
RATE_HZ, PERIOD_NS = 10.0, 100_000_000
"""Rate and period of the pairs."""
TRACKING_SIGMA_PX, STEREO_SIGMA_PX = 0.1, 0.12
"""Noise of tracking from image to image, and from the left to the right image."""
JUMP_RATIO, MISMATCH_RATIO, LOST_RATIO = 0.01, 0.01, 0.06
"""Ratios of tracks that jump, are mismatched, or are lost, in each pair."""
MAX_POINTS, MAX_RANGE_M = 400, 150.0
"""Largest number of points in an image, and largest range of surfaces."""
WALL_CORNER_RATIO, GROUND_CORNER_RATIO = 0.65, 0.25
"""Ratios of cells on walls and on smooth ground with a corner: half of the points are 20 m away."""

DESCRIPTOR_RANGE_M, MAX_DESCRIPTORS, CORNER_SIGMA_PX, FLIPPED_BIT_RATIO = 60.0, 600, 0.3, 0.12
"""Largest range and number of described corners; noise of their pixels, and ratio of wrong bits."""


@dataclass(frozen=True)
class Lens:
    """Residual calibration errors of a rectified pair, in OpenCV's model."""

    left: tuple = (0.0, 0.0, 0.0, 0.0)  # k1, k2, p1, p2
    right: tuple = (0.0, 0.0, 0.0, 0.0)
    offset: float = 0.0  # px, of all disparities
    yaw: float = 0.0  # rad, of the right camera
    pitch: float = 0.0
    roll: float = 0.0

    def pixels(self, points):
        """Return left column and row, right column and row (n, 4) of points (n, 3) in the left camera."""
        if not len(points):
            return np.zeros((0, 4))
        turn = np.array([self.pitch, self.yaw, self.roll])
        shift = -cv2.Rodrigues(turn)[0] @ [BASELINE_M, 0.0, 0.0]
        left, _ = cv2.projectPoints(points, np.zeros(3), np.zeros(3), K, np.array(self.left))
        right, _ = cv2.projectPoints(points, turn, shift, K, np.array(self.right))
        return np.hstack([left.reshape(-1, 2), right.reshape(-1, 2) - [self.offset, 0.0]])


IDEAL = Lens()
BENT = Lens((0.027, 0.004, 0.0, 0.0), (0.027, 0.004, 0.0, 0.0))
"""Radial: 7 px at the left and right edge."""


WORN = Lens((0.0274, -0.0106, -0.0022, 0.0004), (0.025, -0.0044, -0.0023, -0.008), 17.55, 17.7 / FOCAL_PX)
"""As estimated for KITTI's drive 06: also tangential distortion, and a shift and rotation of a camera."""


def turning(degrees, rate, before=10.0, after=10.0):
    """``T_world_camera`` (n, 4, 4) through a junction: straight (m), a turn (deg, deg/s), straight (m).

    Speed falls from 8 to 4 m/s before the turn and grows again after it.
    """
    speeds, rates = [], []
    slow, fast, step = 4.0, 8.0, 1 / RATE_HZ
    for length, (first, last) in ((before, (fast, slow)), (after, (slow, fast))):
        count = max(round(length / ((first + last) / 2 * step)), 1)
        part = np.linspace(first, last, count)
        if first == slow:
            count_turn = round(abs(degrees) / (rate * step))
            ramp = np.minimum(np.minimum(np.arange(count_turn + 6), np.arange(count_turn + 6)[::-1]) / 6, 1.0)
            speeds += [slow] * len(ramp)
            rates += list(ramp * degrees / (ramp.sum() * step))
        speeds += list(part)
        rates += [0.0] * count
    return _poses(np.array(speeds), np.radians(rates))


def street(metres, seed=0, speed=10.0):
    """``T_world_camera`` (n, 4, 4) of a drive with a bend of 20 deg or a junction every 120 m."""
    rng = np.random.default_rng(seed)
    speeds, rates, gone, next_turn = [], [], 0.0, 100.0
    while gone < metres:
        if gone > next_turn:
            angle = float(rng.choice([-90, -20, 20, 90])) * rng.uniform(0.8, 1.2)
            rate = 35.0 if abs(angle) > 50 else 10.0
            count = max(round(abs(angle) / rate * RATE_HZ), 1)
            slow = 4.0 if abs(angle) > 50 else speed
            speeds += [slow] * count
            rates += [angle / count * RATE_HZ] * count
            gone += slow * count / RATE_HZ
            next_turn = gone + 120.0
        else:
            speeds.append(speed)
            rates.append(rng.normal(0, 0.3))
            gone += speed / RATE_HZ
    return _poses(np.array(speeds), np.radians(rates), rng)


def straight(metres, seed=0, speed=10.0, pitch=0.0):
    """``T_world_camera`` (n, 4, 4) of a drive that only steering noise bends; pitch (rad) is down."""
    rng = np.random.default_rng(seed)
    count = round(metres * RATE_HZ / speed)
    poses = _poses(np.full(count, speed), np.radians(rng.normal(0, 0.3, count)), rng)
    down = se3.from_matrix(cv2.Rodrigues(np.array([-pitch, 0.0, 0.0]))[0], np.zeros(3))
    return poses @ down


def edge_lens(pixels):
    """Return a lens with a radial distortion, k1 and a small k2, of a number of pixels at the image edge."""
    edge = (WIDTH_PX - K[0, 2]) / FOCAL_PX
    radial = (0.8 * pixels / (FOCAL_PX * edge**3), 0.2 * pixels / (FOCAL_PX * edge**5), 0.0, 0.0)
    return Lens(radial, radial)


def oblong(length, again, seed=0, apart=16.0, speed=11.0, slow=5.0):
    """``T_world_camera`` (n, 4, 4): down a street, round, back on its other side, round, and down it again.

    This is the shape of KITTI's drive 06. `length` and `again` are the metres of the street, and of it that
    are driven twice, never quite in the same track.
    """
    rng = np.random.default_rng(seed)
    phases = rng.uniform(0, 2 * np.pi, 2)
    radius, gone, poses = apart / 2, 0.0, []
    lap = 2 * (length + np.pi * radius)
    while gone < lap + again:
        half, along = divmod(gone % lap, lap / 2)
        bend = max(along - length, 0.0) / radius
        x, z = radius * (1 - np.cos(bend)), min(along, length) + radius * np.sin(bend)
        x, z, heading = (apart - x, length - z, bend + np.pi) if half else (x, z, bend)
        aside = 0.3 * np.sin(gone / 40 + phases[0]) + 0.2 * np.sin(gone / 17 + phases[1])
        slope = 0.3 / 40 * np.cos(gone / 40 + phases[0]) + 0.2 / 17 * np.cos(gone / 17 + phases[1])
        at = np.array([x + aside * np.cos(heading), 0.0, z - aside * np.sin(heading)])
        pitch, roll = rng.normal(0, 0.002, 2)
        turn = cv2.Rodrigues(np.array([0.0, heading + slope, 0.0]))[0]
        poses.append(se3.from_matrix(turn @ cv2.Rodrigues(np.array([pitch, 0, roll]))[0], at))
        gone += (slow if bend else speed) / RATE_HZ
    return np.array(poses)


def _poses(speeds, rates, rng=None):
    shake = np.zeros((len(speeds), 2)) if rng is None else rng.normal(0, 0.002, (len(speeds), 2))
    heading, at, poses = 0.0, np.zeros(3), []
    for speed, rate, (pitch, roll) in zip(speeds, rates, shake, strict=True):
        middle = heading + rate / RATE_HZ / 2
        at = at + speed / RATE_HZ * np.array([np.sin(middle), 0.0, np.cos(middle)])
        heading += rate / RATE_HZ
        turn = cv2.Rodrigues(np.array([0.0, heading, 0.0]))[0] @ cv2.Rodrigues(np.array([pitch, 0, roll]))[0]
        poses.append(se3.from_matrix(turn, at))
    return np.array(poses)


class Street:
    """Facades, cars and poles along a path, as upright rectangles on flat ground."""

    max_range_m = MAX_RANGE_M
    ends: np.ndarray  # (n, 2, 2) m, both ends of each rectangle in the plane (x, z)
    tops: np.ndarray  # (n,) m, heights above the ground

    def __init__(self, poses, seed=0):
        rng = np.random.default_rng(seed)
        way = poses[:, [0, 2], 3]
        ahead = poses[-1, [0, 2], 2]
        way = np.concatenate([way, way[-1] + np.arange(1, MAX_RANGE_M)[:, None] * ahead])
        along = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(way, axis=0), axis=1)))
        ends, tops = [], []
        kinds = ((9.0, 4.0, 14.0, 5.0, 14.0), (9.0, 4.5, 4.0, 1.3, 1.7), (7.0, 6.0, 0.5, 3.0, 6.0))
        for every, side, long, low, high in kinds:
            for s in np.arange(0.0, along[-1], every):
                for sign in (-1, 1):
                    k = min(int(np.searchsorted(along, s + rng.uniform(0, every))), len(way) - 2)
                    forward = (way[k + 1] - way[k]) / np.linalg.norm(way[k + 1] - way[k])
                    beside = np.array([forward[1], -forward[0]])
                    apart = side + rng.uniform(5.0, 25.0) if long > 10 else side + rng.uniform(-0.5, 1.5)
                    centre = way[k] + sign * apart * beside
                    bent = rng.normal(0, 0.15)
                    direction = np.cos(bent) * forward + np.sin(bent) * beside
                    half = long * rng.uniform(0.3, 0.6)
                    segment = np.stack([centre - half * direction, centre + half * direction])
                    on = np.linspace(segment[0], segment[1], 9)
                    if np.linalg.norm(way[:, None] - on, axis=2).min() > 3.0:
                        ends.append(segment)
                        tops.append(rng.uniform(low, high))
        self.ends, self.tops = np.array(ends), np.array(tops)

    def hit(self, start, rays):
        """Return the intersections (n, 3) of rays (n, 3) from a position with surfaces; NaN for the sky."""
        near = np.linalg.norm(self.ends.mean(axis=1) - start[[0, 2]], axis=1) < self.max_range_m
        first, edge = self.ends[near, 0] - start[[0, 2]], self.ends[near, 1] - self.ends[near, 0]
        flat = rays[:, None, [0, 2]]
        with np.errstate(divide="ignore", invalid="ignore"):
            cross = flat[..., 0] * edge[:, 1] - flat[..., 1] * edge[:, 0]
            far = (first[:, 0] * edge[:, 1] - first[:, 1] * edge[:, 0]) / cross
            place = (first[:, 0] * flat[..., 1] - first[:, 1] * flat[..., 0]) / cross
            down = start[1] + far * rays[:, None, 1]
            met = (
                (far > 0)
                & (place >= 0)
                & (place <= 1)
                & (down < CAMERA_HEIGHT_M)
                & (down > CAMERA_HEIGHT_M - self.tops[near])
            )
            wall = np.where(met, far, np.inf).min(axis=1, initial=np.inf)
            ground = np.where(rays[:, 1] > 0, (CAMERA_HEIGHT_M - start[1]) / rays[:, 1], np.inf)
        reach = np.minimum(wall, ground)
        reach = np.where(reach * np.linalg.norm(rays, axis=1) < self.max_range_m, reach, np.nan)
        return start + reach[:, None] * rays


class CropRows(Street):
    """Rows of plants along a path, 0.7 m apart: upright rectangles across the rows, on flat ground."""

    max_range_m = 15.0

    def __init__(self, poses, seed=0):
        rng = np.random.default_rng(seed)
        way = poses[:, [0, 2], 3]
        way = np.concatenate([way, way[-1] + np.arange(1, self.max_range_m)[:, None] * poses[-1, [0, 2], 2]])
        gone = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(way, axis=0), axis=1)))
        along = np.arange(0.0, gone[-1], 0.5)
        centre = np.column_stack([np.interp(along, gone, way[:, k]) for k in (0, 1)])
        forward = np.gradient(centre, axis=0)
        forward /= np.linalg.norm(forward, axis=1, keepdims=True)
        beside = np.column_stack([forward[:, 1], -forward[:, 0]])
        ends, tops = [], []
        for row in np.arange(-3.85, 3.9, 0.7):
            plants = centre + rng.uniform(-0.2, 0.2, (len(along), 1)) * forward
            plants += (row + rng.normal(0, 0.05, (len(along), 1))) * beside
            half = rng.uniform(0.1, 0.2, (len(along), 1)) * beside
            ends.append(np.stack([plants - half, plants + half], axis=1))
            tops.append(rng.uniform(0.2, 0.5, len(along)))
        self.ends, self.tops = np.concatenate(ends), np.concatenate(tops)


@dataclass
class Drive:
    """A stereo pair on a path, and its simulated observations: the tracking method of an odometer."""

    poses: np.ndarray
    world: Street
    lens: Lens = IDEAL
    noise: float = 1.0
    seed: int = 0
    correct: Callable[[np.ndarray], np.ndarray] = lambda pixels: pixels  # corrects observed pixels (n, 4)
    flow_bias: float = 0.0  # ratio of the image motion by which tracked points lag, in all steps
    at: int = 0  # current pair
    known: dict = field(default_factory=dict)  # point and drift of each observation, by its left column

    def __post_init__(self):
        self.rng = np.random.default_rng(self.seed)

    def sample_points(self):
        """Return a point (n, 3) of the world in each cell of the left image."""
        cell = np.sqrt(WIDTH_PX * HEIGHT_PX / MAX_POINTS)
        row, column = np.mgrid[0:HEIGHT_PX:cell, 0:WIDTH_PX:cell].reshape(2, -1)
        pixels = np.stack([column, row], axis=1) + self.rng.uniform(0, cell, (len(row), 2))
        rays = np.column_stack([(pixels - K[:2, 2]) / FOCAL_PX, np.ones(len(pixels))])
        T = self.poses[self.at]
        points = self.world.hit(T[:3, 3], rays @ T[:3, :3].T)
        corner_ratio = np.where(points[:, 1] > CAMERA_HEIGHT_M - 0.01, GROUND_CORNER_RATIO, WALL_CORNER_RATIO)
        return points[~np.isnan(points[:, 0]) & (self.rng.random(len(points)) < corner_ratio)]

    def project(self, points):
        """Return the pixels (n, 4) of points (n, 3), without noise; NaN if occluded or outside the image."""
        T = self.poses[self.at]
        near = se3.apply(se3.invert(T), points)
        rays = points - T[:3, 3]
        hidden = np.linalg.norm(self.world.hit(T[:3, 3], rays) - T[:3, 3], axis=1)
        there = np.linalg.norm(rays, axis=1)
        pixels = self.lens.pixels(np.where(near[:, 2:] > 0.5, near, [0.0, 0.0, 1.0]))
        inside = (pixels[:, [0, 2]] > 4) & (pixels[:, [0, 2]] < WIDTH_PX - 5)
        inside &= (pixels[:, [1, 3]] > 4) & (pixels[:, [1, 3]] < HEIGHT_PX - 5)
        good = inside.all(axis=1) & (near[:, 2] > 0.5) & ~(hidden < 0.98 * there)
        pixels[good] = self.correct(pixels[good])
        return np.where(good[:, None], pixels, np.nan)

    def step(self, k):
        """Return tracks from pair k to pair k + 1, for self-calibration."""
        self.at = k
        points = self.sample_points()
        before = self.project(points)
        self.at = k + 1
        now = self.project(points)
        now += self.flow_bias * (before - now)
        good = ~np.isnan(before[:, 0]) & ~np.isnan(now[:, 0])
        before, now = (
            each[good] + self.rng.normal(0, self.noise * STEREO_SIGMA_PX, each[good].shape)
            for each in (before, now)
        )
        jumps = self.rng.random(len(now)) < JUMP_RATIO * self.noise
        now[jumps] += self.rng.uniform(-15, 15, (int(jumps.sum()), 4))
        return StereoTracks(before[:, :2], before[:, 2:], now[:, :2], now[:, 2:])

    def observe(self, previous, current, tracks, predicted, rig, find_new):
        """Return what the tracking of an odometer would: tracks that were found, and new points."""
        places = np.array([self.known[p][0] for p in tracks.pixels[:, 0].tolist()]).reshape(-1, 3)
        drift = np.array([self.known[p][1] for p in tracks.pixels[:, 0].tolist()]).reshape(-1, 2)
        exact = self.project(places)
        drift = drift + self.rng.normal(0, TRACKING_SIGMA_PX * self.noise, drift.shape)
        jumps = self.rng.random(len(drift)) < JUMP_RATIO * self.noise
        drift[jumps] += self.rng.uniform(-15, 15, (int(jumps.sum()), 2))
        rows = np.flatnonzero(~np.isnan(exact[:, 0]) & (self.rng.random(len(exact)) > LOST_RATIO))
        found = self._match(exact[rows], drift[rows])
        new = self.sample_points() if find_new else np.zeros((0, 3))
        seen = self.project(new)
        new, seen = new[~np.isnan(seen[:, 0])], seen[~np.isnan(seen[:, 0])]
        new_drift = np.zeros((len(new), 2))
        first = self._match(seen, new_drift)
        columns = [*found[:, 0].tolist(), *first[:, 0].tolist()]
        behind = zip([*places[rows], *new], [*drift[rows], *new_drift], strict=True)
        self.known = dict(zip(columns, behind, strict=True))
        return PairObservation(rows, found, first, len(first))

    def _match(self, exact, drift):
        """Return left column, left row and right column (n, 3) with noise."""
        right = exact[:, 2] + drift[:, 0] + self.rng.normal(0, STEREO_SIGMA_PX * self.noise, len(exact))
        wrong = self.rng.random(len(exact)) < MISMATCH_RATIO * self.noise
        right[wrong] += self.rng.uniform(-20, 20, int(wrong.sum()))
        seen = np.column_stack([exact[:, :2] + drift, right])
        seen[seen[:, 0] - seen[:, 2] < 0.5, 2] = np.nan
        return seen


class Corners:
    """Corners on the walls of a street with random descriptors.

    All are different, so place recognition is easier than with images.
    """

    def __init__(self, world, seed=0):
        self.rng = np.random.default_rng(seed)
        wide = np.linalg.norm(world.ends[:, 1] - world.ends[:, 0], axis=1)
        counts = np.clip(wide * world.tops, 4, 90).astype(int)
        ends, tops = np.repeat(world.ends, counts, axis=0), np.repeat(world.tops, counts)
        flat = ends[:, 0] + self.rng.random((len(ends), 1)) * (ends[:, 1] - ends[:, 0])
        up = CAMERA_HEIGHT_M - self.rng.random(len(ends)) * tops
        self.points = np.column_stack([flat[:, 0], up, flat[:, 1]])
        self.bits = self.rng.integers(0, 2, (len(self.points), 256), dtype=np.uint8)
        self.strength = self.rng.random(len(self.points))

    def observe(self, drive):
        """Return the observation of stereo SLAM for the current pair of a drive."""
        away = np.linalg.norm(self.points - drive.poses[drive.at][:3, 3], axis=1)
        rows = np.flatnonzero(away < DESCRIPTOR_RANGE_M)
        seen = drive.project(self.points[rows])
        shown = ~np.isnan(seen[:, 0])
        rows, seen = rows[shown], seen[shown][:, :3]
        strongest = np.argsort(self.rng.normal(0, 0.2, len(rows)) - self.strength[rows])[:MAX_DESCRIPTORS]
        rows, seen = (
            rows[strongest],
            seen[strongest] + self.rng.normal(0, CORNER_SIGMA_PX, (len(strongest), 3)),
        )
        clear = seen[:, 0] - seen[:, 2] > FOCAL_PX / MAX_DEPTH_BASELINES
        bits = self.bits[rows[clear]] ^ (self.rng.random((int(clear.sum()), 256)) < FLIPPED_BIT_RATIO)
        return {
            "points": RIG.points(seen[clear]).astype(np.float32),
            "descriptors": np.packbits(bits, axis=1),
            "camera": np.array([[FOCAL_PX, FOCAL_PX, K[0, 2], K[1, 2], BASELINE_M]]),
        }


RIG = StereoRig(FOCAL_PX, FOCAL_PX, K[0, 2], K[1, 2], BASELINE_M, WIDTH_PX, HEIGHT_PX)
GRAY = np.full((HEIGHT_PX, WIDTH_PX), 128, np.uint8)


def odometry(drive, settings, rig=RIG):
    """Return the poses ``T_world_camera`` (n, 4, 4) of stereo odometry on a drive."""
    odometer, poses = StereoOdometer(rig, drive, settings), []
    for k in range(len(drive.poses)):
        drive.at = k
        step = odometer.advance(GrayPair(GRAY, GRAY), drive.at * PERIOD_NS)
        assert step.reason == "", f"pair {drive.at}: {step.reason}"
        poses.append(step.T_world_camera)
    return np.array(poses)


def trajectory(poses):
    """Return poses as a trajectory with 10 Hz."""
    orientations, positions = se3.to_quaternion(poses)
    return Trajectory(np.arange(len(poses), dtype=np.int64) * PERIOD_NS, positions, orientations)


def length(poses):
    """Return the length of a path, m."""
    return float(np.linalg.norm(np.diff(poses[:, :3, 3], axis=0), axis=1).sum())
