"""Small recordings that checks are tried on: a robot that stands, drives and turns; no formula of a check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from transect.base.clocks import NS
from transect.recording import FrameTree, Recording, Stream, arrow, stream_of_values
from transect.types import Imu, LaserScan, NavFix, Odometry, PointCloud, RadarRange, RigidBodyState

START_NS = 1_700_000_000 * NS


def drive(seconds: int = 40, seed: int = 0) -> Recording:
    """Return an IMU (100 Hz), odometry (20 Hz) and fixes (5 Hz): rest for a third, then a drive."""
    rng = np.random.default_rng(seed)

    def times(rate: int) -> tuple[np.ndarray, np.ndarray]:
        t = np.arange(seconds * rate) / rate
        return t, START_NS + np.rint(t * NS).astype(np.int64)

    def moving(t: np.ndarray) -> np.ndarray:
        return np.clip((t - seconds / 3) / 2, 0, 1)

    def turning(t: np.ndarray) -> np.ndarray:
        return moving(t) * (0.4 * np.sin(1.1 * t) + 0.3 * np.sin(2.7 * t + 1))

    t, imu_ns = times(100)
    noise = rng.normal(size=(6, len(t)))
    shaking = 0.01 + 0.2 * moving(t)
    imu = stream_of_values(
        "imu", imu_ns,
        {
            "acc_x": shaking * noise[0], "acc_y": shaking * noise[1], "acc_z": 9.81 + shaking * noise[2],
            "gyro_x": 0.003 * noise[3], "gyro_y": 0.003 * noise[4], "gyro_z": turning(t) + 0.003 * noise[5],
        },
        type=Imu, log_ns=imu_ns + 2_000_000 + rng.integers(0, 500_000, len(t)),
    )  # fmt: skip
    t, odom_ns = times(20)
    speed = moving(t) + 0.01 * rng.normal(size=len(t)) * (moving(t) > 0)
    odom = stream_of_values(
        "odom", odom_ns,
        {"vx": speed, "vy": 0 * t, "vz": 0 * t, "wx": 0 * t, "wy": 0 * t, "wz": turning(t)},
        type=Odometry,
    )  # fmt: skip
    t, gps_ns = times(5)
    north = np.cumsum(moving(t)) / 5 + 0.01 * rng.normal(size=len(t))
    east = 0.01 * rng.normal(size=len(t))
    gps = stream_of_values(
        "gps", gps_ns,
        {
            "lat": 0.6 + north / 6.37e6, "lon": -1.0 + east / 6.37e6,
            "alt": 50 + 0.02 * rng.normal(size=len(t)),
        },
        type=NavFix,
    )  # fmt: skip
    return Recording("drive", (imu, odom, gps))


def declaring(seconds: int = 40, seed: int = 0) -> Recording:
    """Return the drive with fixes that declare their type and deviations, and states with a covariance."""
    recording = drive(seconds, seed)
    gps = recording["gps"]
    columns = {name: np.asarray(gps[name]) for name in ("lat", "lon", "alt")}
    columns |= {f"std_{name}": np.full(len(gps), 0.01) for name in ("north", "east", "down")}
    rtk = stream_of_values("gps", gps.t_ns, {**columns, "fix": ["rtk fixed"] * len(gps)}, type=NavFix)
    t_ns = START_NS + np.arange(10 * seconds) * (NS // 10)
    random = np.random.default_rng(seed).normal(size=(len(t_ns), 6, 6)) * [0.1, 0.1, 0.1, 1e-3, 1e-3, 1e-3]
    state = {name: np.zeros(len(t_ns)) for name in ("x", "y", "z", "qx", "qy", "qz")}
    state |= {"qw": np.ones(len(t_ns)), "covariance": (random.swapaxes(1, 2) @ random).reshape(-1, 36)}
    nav = stream_of_values("nav", t_ns, state, type=RigidBodyState)
    return recording.replace(streams=(recording["imu"], recording["odom"], rtk, nav))


def winding(seconds: int = 40, seed: int = 0, arm: tuple[float, float] = (0.0, 0.0)) -> Recording:
    """Return a drive on a winding way over bumps: an IMU that tilts, odometry, fixes of two receivers.

    The antennas of both are at an arm, m to the front and to the left of the body.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(seconds * 50) / 50
    t_ns = START_NS + np.rint(t * NS).astype(np.int64)
    yaw = 1.2 * np.sin(0.3 * t)
    attitude = Rotation.from_euler(
        "ZYX", np.column_stack([yaw, 0.08 * np.sin(1.3 * t), 0.1 * np.sin(0.9 * t)])
    )
    force = attitude.inv().apply([0.0, 0.0, 9.81]) + 0.05 * rng.normal(size=(len(t), 3))
    turn = (attitude[:-1].inv() * attitude[1:]).as_rotvec() * 50
    turn = np.concatenate([turn, turn[-1:]]) + 0.002 * rng.normal(size=(len(t), 3))
    columns = {f"acc_{axis}": force[:, k] for k, axis in enumerate("xyz")}
    columns |= {f"gyro_{axis}": turn[:, k] for k, axis in enumerate("xyz")}
    imu = stream_of_values("imu", t_ns, columns, type=Imu, frame="imu")
    still = {name: np.zeros(len(t)) for name in ("vy", "vz", "wx", "wy")}
    odom = stream_of_values(
        "odom", t_ns, {"vx": np.ones(len(t)), **still, "wz": np.gradient(yaw, t)}, type=Odometry
    )
    east, north = np.cumsum(np.sin(-yaw)) / 50, np.cumsum(np.cos(yaw)) / 50
    north = north + arm[0] * np.cos(yaw) - arm[1] * np.sin(yaw)
    east = east - arm[0] * np.sin(yaw) - arm[1] * np.cos(yaw)
    fixes: list[Stream] = []
    for name in ("gps", "gps2"):
        noise = 0.01 * rng.normal(size=(3, len(t) // 10))
        lat, lon = (
            0.6 + (north[::10] + noise[0]) / 6.37e6,
            0.4 + (east[::10] + noise[1]) / 6.37e6 / np.cos(0.6),
        )
        values = {"lat": lat, "lon": lon, "alt": 50 + noise[2]}
        fixes.append(stream_of_values(name, t_ns[::10], values, type=NavFix, frame="antenna"))
    frames = FrameTree()
    frames.add_static("base_link", "imu", np.eye(4))
    mount = np.eye(4)
    mount[:2, 3] = arm
    frames.add_static("base_link", "antenna", mount)
    return Recording("winding", (imu, odom, *fixes), frames=frames)


def yard(seconds: int = 30, seed: int = 0, walker: bool = False, speed: float = 0.0) -> Recording:
    """Return a laser (20 Hz, two interleaved combs of 1 degree) in a yard: a round wall, posts, sky, a bush.

    Where asked, somebody walks across 4 m in front, or the robot drives: then the wall comes nearer.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(20 * seconds) / 20
    ranges: list[list[float]] = []
    for i, now in enumerate(t):
        angles = np.radians(np.arange(-90, 90) + 0.5 * (i % 2))
        wall = 12 + 3 * np.cos(3 * angles) - speed * now
        wall = np.where(np.abs(np.sin(9 * angles)) > 0.97, 6.0, wall)  # posts
        wall = np.where(np.abs(angles - 0.9) < 0.1, wall - rng.uniform(0, 2, len(angles)), wall)  # leaves
        wall = np.where(angles < -1.2, np.nan, wall)  # sky
        if walker:
            aside = 4 * np.tan(angles) - (-3 + 6 * now / seconds)
            depth = 0.15 * np.sqrt(np.clip(1 - (aside / 0.3) ** 2, 0, 1))
            wall = np.where(np.abs(aside) < 0.25, 4 / np.cos(angles) - depth, wall)
        ranges.append((wall + rng.normal(0, 0.01, len(wall))).tolist())
    columns = {
        "ranges": ranges, "start_angle": np.radians(-90 + 0.5 * (np.arange(len(t)) % 2)),
        "angle_increment": np.full(len(t), np.radians(1.0)),
    }  # fmt: skip
    laser = stream_of_values(
        "laser", START_NS + np.rint(t * NS).astype(np.int64), columns, type=LaserScan, frame="mast"
    )
    frames = FrameTree()
    frames.add_static("body", "mast", np.eye(4))
    return Recording("yard", (laser,), frames=frames)


def lane(seconds: int = 24, seed: int = 0, walker: bool = False) -> Recording:
    """Return a laser (20 Hz, 1 degree) and poses of a robot that drives up a lane with posts at 1 m/s.

    Where asked, somebody walks along 1 m/s faster, 3 m ahead at first and 1.5 m to the left.
    """
    rng, angles = np.random.default_rng(seed), np.radians(np.arange(-90, 91))
    t = np.arange(20 * seconds) / 20
    towards = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    posts = [(x, side) for x in range(2, seconds + 20, 4) for side in (-4.0, 4.5)]
    ranges: list[list[float]] = []
    for now in t:
        walls = np.where(towards[:, 1] > 0, 6.0, -5.0) / np.where(towards[:, 1] == 0, 1e-9, towards[:, 1])
        seen = np.where((walls > 0) & (walls < 30.0), walls, np.nan)
        round_things = [(x, y, 0.15) for x, y in posts] + [(3 + 2 * now, 1.5, 0.25)] * walker
        for x, y, radius in round_things:
            along = towards @ np.array([x - now, y])
            aside = (x - now) ** 2 + y**2 - along**2
            met = along - np.sqrt(np.maximum(radius**2 - aside, 0.0))
            seen = np.where((aside < radius**2) & (met > 0), np.fmin(seen, met), seen)
        ranges.append((seen + rng.normal(0, 0.01, len(angles))).tolist())
    t_ns = START_NS + np.rint(t * NS).astype(np.int64)
    columns = {"ranges": ranges, "start_angle": np.full(len(t), angles[0]),
               "angle_increment": np.full(len(t), np.radians(1.0))}  # fmt: skip
    laser = stream_of_values("laser", t_ns, columns, type=LaserScan, frame="mast")
    still = {name: np.zeros(len(t)) for name in ("y", "z", "qx", "qy", "qz", "vy", "vz", "wx", "wy", "wz")}
    poses = {**still, "x": t, "qw": np.ones(len(t)), "vx": np.ones(len(t))}
    odometry = stream_of_values("odometry", t_ns, poses, type=Odometry, frame="odom", child="body")
    frames = FrameTree()
    frames.add_static("body", "mast", np.eye(4))
    return Recording("lane", (laser, odometry), frames=frames)


def _is_leaf(cells: np.ndarray, seed: int) -> np.ndarray:
    """Return by chance, and always the same, which cells (..., 3) of space have a leaf: one in eight."""
    words = cells.astype(np.int64).view(np.uint64) * np.array([73856093, 19349663, 83492791], np.uint64)
    mixed = words[..., 0] ^ words[..., 1] ^ words[..., 2] ^ np.uint64(seed)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return (mixed >> np.uint64(40)) % 8 == 0


def hedges(seconds: int = 12, seed: int = 0, speed: float = 5.0) -> Recording:
    """Return a laser (10 Hz, 1 degree) and poses of a car between two hedges, whose leaves sway by 3 cm.

    Hedges are 1.5 m thick, of leaves in cells of 5 cm, through which some beams go far; the car pitches and
    rolls, so that its scans meet other leaves each time.
    """
    rng, angles = np.random.default_rng(seed), np.radians(np.arange(-90, 91))
    t, along = np.arange(10 * seconds) / 10, np.arange(0.5, 20.0, 0.05)
    tilt = np.apply_along_axis(np.convolve, 1, rng.normal(0, 0.012, (2, len(t) + 7)), np.ones(8) / 8, "valid")
    ranges: list[list[float]] = []
    for k, now in enumerate(t):
        forward, left = along * np.cos(angles)[:, None], along * np.sin(angles)[:, None]
        height = 1.0 + (speed > 0) * (tilt[0, k] * forward + tilt[1, k] * left)
        x = forward + speed * now
        swaying = 0.03 * np.sin(2.5 * now + 0.7 * x)
        depth = np.abs(left) - 2.5 - 0.15 * np.sin(1.7 * x)
        inside = (depth > 0) & (depth < 1.5) & (height < 1.6 + 0.3 * np.sin(0.9 * x))
        cells = np.floor(np.stack([x + swaying, left + 0.5 * swaying, height], axis=-1) / 0.05)
        met = (inside & _is_leaf(cells, seed)) | (height < 0)
        first = np.where(met.any(axis=1), along[met.argmax(axis=1)], np.nan)
        ranges.append((first + rng.normal(0, 0.01, len(angles))).tolist())
    t_ns = START_NS + np.rint(t * NS).astype(np.int64)
    columns = {"ranges": ranges, "start_angle": np.full(len(t), angles[0]),
               "angle_increment": np.full(len(t), np.radians(1.0))}  # fmt: skip
    laser = stream_of_values("laser", t_ns, columns, type=LaserScan, frame="mast")
    still = {name: np.zeros(len(t)) for name in ("y", "z", "qx", "qy", "qz", "vy", "vz", "wx", "wy", "wz")}
    poses = {**still, "x": speed * t, "qw": np.ones(len(t)), "vx": np.full(len(t), speed)}
    odometry = stream_of_values("odometry", t_ns, poses, type=Odometry, frame="odom", child="body")
    frames = FrameTree()
    frames.add_static("body", "mast", np.eye(4))
    return Recording("hedges", (laser, odometry), frames=frames)


def radar(seconds: int = 30, seed: int = 0) -> Stream:
    """Return a radar (2 Hz, bearings 3 degrees apart) that sees the wall of the yard, and no posts."""
    rng = np.random.default_rng([seed, 1])
    bearings = np.radians(np.arange(-90, 90, 3))
    angle = np.tile(bearings, 2 * seconds)
    t_ns = START_NS + np.arange(len(angle)) * (NS // (2 * len(bearings)))
    columns = {
        "range": 12 + 3 * np.cos(3 * angle) + rng.normal(0, 0.1, len(angle)),
        "angle": angle, "reflectivity": 40 + rng.normal(0, 1, len(angle)),
    }  # fmt: skip
    return stream_of_values("radar", t_ns, columns, type=RadarRange, frame="mast")


POSTS = ((5.0, 2.0, 0.2), (3.0, -4.0, 0.3), (-4.0, 1.0, 0.25), (6.0, -2.5, 0.15))


def cast(origin: np.ndarray, towards: np.ndarray) -> np.ndarray:
    """Return how far rays (n, 3) go in a hall: slanted walls, a floor 1.2 m below, posts, no ceiling."""
    walls = [(20, 8.0), (115, 5.0), (200, 6.0), (285, 7.0)]
    planes = [(np.array([np.cos(np.radians(a)), np.sin(np.radians(a)), 0.0]), far) for a, far in walls]
    planes.append((np.array([0.0, 0.0, -1.0]), 1.2))
    best = np.full(len(towards), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for normal, far in planes:
            t = (far - origin @ normal) / (towards @ normal)
            best = np.where((t > 0) & (t < best), t, best)
        for x, y, radius in POSTS:
            a = (towards[:, :2] ** 2).sum(axis=1)
            b = (origin[:2] - (x, y)) @ towards[:, :2].T
            c = ((origin[:2] - (x, y)) ** 2).sum() - radius**2
            t = (-b - np.sqrt(b**2 - a * c)) / a
            best = np.where((t > 0) & (t < best), t, best)
    top = origin[2] + best * towards[:, 2]
    return np.where(top < 3.0, best, np.nan)


def planar(name: str, T: np.ndarray, seconds: int = 14, seed: int = 0) -> Stream:
    """Return a laser (10 Hz, half a degree) of a robot that stands in the hall, at T_body_laser."""
    rng = np.random.default_rng([seed, len(name)])
    angles = np.radians(np.arange(-90, 90.1, 0.5))
    towards = np.column_stack([np.cos(angles), np.sin(angles), 0 * angles]) @ T[:3, :3].T
    far = cast(T[:3, 3], towards)
    t_ns = START_NS + np.arange(10 * seconds) * (NS // 10)
    columns = {
        "ranges": (far + rng.normal(0, 0.01, (len(t_ns), len(far)))).tolist(),
        "start_angle": np.full(len(t_ns), angles[0]), "angle_increment": np.full(len(t_ns), np.radians(0.5)),
    }  # fmt: skip
    return stream_of_values(name, t_ns, columns, type=LaserScan, frame=name)


def spinning(name: str = "lidar", seconds: int = 14, rings: int = 16, seed: int = 0) -> Stream:
    """Return a lidar (1 Hz, few rings, 1.5 degrees round) of a robot that stands in the hall."""
    elevation, azimuth = np.radians(np.linspace(-15, 15, rings)), np.radians(np.arange(-180, 180, 1.5))
    up, round_ = (each.ravel() for each in np.meshgrid(elevation, azimuth))
    towards = np.column_stack([np.cos(up) * np.cos(round_), np.cos(up) * np.sin(round_), np.sin(up)])
    far = cast(np.zeros(3), towards)
    t_ns = START_NS + np.arange(seconds) * NS

    def load(row: Mapping[str, Any]) -> PointCloud:
        noise = np.random.default_rng([seed, int(row["t_ns"]) % 10**12 // 10**8]).normal(0, 0.01, len(far))
        points = towards * (far + noise)[:, None]
        return PointCloud(points[np.isfinite(far)], t_ns=int(row["t_ns"]), frame=name)

    table = arrow.table(t_ns, {"payload": arrow.strings([f"{k}.pcd" for k in range(len(t_ns))])})
    return Stream(name, PointCloud, table, frame=name, loader=load)


def hall(*others: Stream, seconds: int = 14, speed: float = 0.0) -> Recording:
    """Return a flat and an upright laser in the hall, other streams, and wheels that say that it stands."""
    upright = np.eye(4)
    upright[:3, :3] = Rotation.from_euler("x", 90, degrees=True).as_matrix()
    upright[:3, 3] = [0.1, -0.2, 0.3]
    frames = FrameTree()
    frames.add_static("body", "flat", np.eye(4))
    frames.add_static("body", "upright", upright)
    frames.add_static("body", "lidar", np.eye(4))
    t_ns = START_NS + np.arange(10 * seconds) * (NS // 10)
    still = dict.fromkeys(("vy", "vz", "wx", "wy", "wz"), np.zeros(len(t_ns)))
    wheels = stream_of_values("wheels", t_ns, {"vx": np.full(len(t_ns), speed), **still}, type=Odometry)
    lasers = (planar("flat", np.eye(4), seconds), planar("upright", upright, seconds))
    return Recording("hall", (*lasers, *others, wheels), frames=frames)
