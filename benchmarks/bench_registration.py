"""Registration without an initial guess, compared with KISS-Matcher and small_gicp by default; fusion.

Real pairs, all of which were used while parameters were chosen; five initial poses each.
"""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import kiss_matcher
import numpy as np
import small_gicp
from threadpoolctl import threadpool_info, threadpool_limits

import transect
from benchmarks._harness import duration, quality
from transect.geometry import descriptors, neighbours, rotations, se3, surfaces
from transect.nodes.cloud.point_cloud_assembly import fuse
from transect.recording import Recording, Stream
from transect.recording.stream import stream_of_values
from transect.types import PointCloud

DATA_DIR = Path(os.environ.get("TRANSECT_TEST_DATA") or "../shared/data")
MAX_ERRORS = {"small_gicp": (0.02, 0.2), "libpointmatcher car": (0.06, 0.3)}
"""Largest errors, m and deg; the ground truth of the other pairs is less accurate."""
VARIANTS = ("KissMatcherPlane", "KissMatcherGicp", "RansacGicp", "IssRansacGicp")
GUESS_COUNT = 5
"""Number of initial poses of each pair, 1 m and 20 deg away; the worst result counts."""
MAX_FUSION_S, MAX_DESCRIPTION_S = 0.1, {"fpfh": 1.0, "pfh": 10.0, "shot": 1.5}
"""Limits for five clouds of 200,000 points, and for 5000 keypoints (PFH: all pairs of neighbours)."""


class Pair(NamedTuple):
    """Two clouds (n, 3) and ``T_sink_source``."""

    name: str
    source: np.ndarray
    sink: np.ndarray
    truth: np.ndarray


def main() -> None:
    pools = ", ".join(f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info())
    print(f"  threads: {pools}; runs hold libraries to 1, the peer is held to 1 but for TBB")
    for pair in pairs():
        bench_pair(pair)
    bench_fusion()
    bench_description()


def pairs() -> Iterator[Pair]:
    """Return the available pairs."""
    if (folder := DATA_DIR / "lidar_small_gicp").is_dir():
        clouds = transect.open(folder)
        both = (clouds[name][0].payload.points for name in ("source", "target"))
        yield Pair("small_gicp", *both, np.loadtxt(folder / "T_target_source.txt"))
    if (folder := DATA_DIR / "lidar_libpointmatcher").is_dir():
        clouds = transect.open(folder)
        sink, source = (sample.payload.points for sample in clouds["data/car_cloud"])
        yield Pair("libpointmatcher car", source, sink, matrix(clouds["data/carCloudList"][1].value))
    for name, stream, last in (("newer_01", "planes", 4), ("kitti_07_dump", "points", 1)):
        if (folder := DATA_DIR / "lidar_gtsam_points" / name).is_dir():
            clouds = transect.open(folder)
            sink, source = (clouds[stream][i].payload.points for i in (0, last))
            first, second = (matrix(clouds["graph"][i].value) for i in (0, last))
            yield Pair(f"{name} 0-{last}", source, sink, se3.invert(first) @ second)


def bench_pair(pair: Pair) -> None:
    guesses = wrong_guesses(GUESS_COUNT)
    theirs = worst(pair, guesses, peer)
    for variant in VARIANTS:
        found = worst(pair, guesses, lambda a, b, variant=variant: registered(variant, a, b))
        bars = MAX_ERRORS.get(pair.name, (None, None)) if variant == VARIANTS[0] else (None, None)
        print(
            f"    {pair.name}, {variant}: {found[2]} of {GUESS_COUNT} failed, {1e3 * found[3]:.0f} ms CPU"
            f" (peer: {theirs[2]}, worst {theirs[0]:.3f} m {theirs[1]:.2f} deg, {1e3 * theirs[3]:.0f} ms)"
        )
        quality(f"{pair.name}, {variant}: worst of {GUESS_COUNT}", found[0], "m", at_most=bars[0])
        quality(f"{pair.name}, {variant}: worst of {GUESS_COUNT}", found[1], "deg", at_most=bars[1])


def worst(
    pair: Pair, guesses: list[np.ndarray], register: Callable[[np.ndarray, np.ndarray], np.ndarray | None]
) -> tuple[float, float, int, float]:
    """Return the largest errors in m and deg, the number of failures, and the mean CPU time in s."""
    errors, start = [], time.process_time()
    for moved in guesses:
        found = register(se3.apply(moved, pair.source), pair.sink)
        errors.append((np.nan, np.nan) if found is None else error(found @ moved, pair.truth))
    spent = (time.process_time() - start) / len(guesses)
    far, turned = np.array(errors).T
    failed = int(np.isnan(far).sum())
    if failed == len(guesses):
        return np.inf, np.inf, failed, spent
    return float(np.nanmax(far)), float(np.nanmax(turned)), failed, spent


def registered(variant: str, source: np.ndarray, sink: np.ndarray) -> np.ndarray | None:
    clouds = tuple(one(tag, points) for tag, points in (("source", source), ("target", sink)))
    found = transect.run(f"CloudRegistration/{variant}", Recording("pair", clouds))["pose"].values
    return matrix(found[0]) if found else None


def peer(source: np.ndarray, sink: np.ndarray) -> np.ndarray | None:
    """Register with the default settings of both libraries."""
    with threadpool_limits(1):
        matcher = kiss_matcher.KISSMatcher(kiss_matcher.KISSMatcherConfig())
        begun = matcher.estimate(source.astype(np.float32), sink.astype(np.float32))
        guess = se3.from_matrix(np.array(begun.rotation), np.array(begun.translation).reshape(3))
        found = small_gicp.align(sink.astype(np.float64), source, guess)
    return np.array(found.T_target_source) if begun.valid and found.converged else None


def bench_fusion() -> None:
    rng = np.random.default_rng(0)
    rows, columns = np.divmod(np.arange(200_000), 500)
    grid = np.column_stack([columns * 0.01, rows * 0.01, np.zeros(len(rows))])
    clouds = [grid + rng.normal(0, 0.01, grid.shape) + np.array([0.4 * k, 0, 0]) for k in range(5)]
    points, weights = np.concatenate(clouds), rng.uniform(0.5, 2, 1_000_000)
    fuse(points, weights, 0.03)  # compiles
    duration("five clouds of 200,000 points fused", lambda: fuse(points, weights, 0.03), target=MAX_FUSION_S)


def bench_description() -> None:
    for pair in pairs():
        cloud = neighbours.voxel_means(pair.sink, surfaces.voxel_for(pair.sink, 5000))
        normals = surfaces.normals(cloud, 20).normals
        radius = 7 * surfaces.spacing(cloud)
        for describe in (descriptors.fpfh, descriptors.pfh, descriptors.shot):
            with threadpool_limits(1):
                name = f"{describe.__name__.upper()} of {len(cloud)} keypoints, {pair.name}"
                described = partial(describe, cloud, normals, radius)
                duration(name, described, target=MAX_DESCRIPTION_S[describe.__name__], repeat=3)


def wrong_guesses(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(42)
    axes, ways = (
        each / np.linalg.norm(each, axis=1, keepdims=True) for each in rng.normal(size=(2, count, 3))
    )
    return list(se3.from_matrix(rotations.matrix_from_rotation_vector(np.radians(20) * axes), ways))


def error(found: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    turn = rotations.rotation_vector_from_matrix(found[:3, :3].T @ truth[:3, :3])
    return float(np.linalg.norm(found[:3, 3] - truth[:3, 3])), float(np.degrees(np.linalg.norm(turn)))


def one(tag: str, points: np.ndarray) -> Stream:
    cloud = PointCloud(points)
    return stream_of_values(
        tag, np.zeros(1, np.int64), {}, type=PointCloud, tag=tag, loader=lambda row: cloud
    )


def matrix(pose: transect.types.Pose) -> np.ndarray:
    return se3.from_quaternion(pose.orientation, pose.position)


if __name__ == "__main__":
    main()
