"""FrameTree lookups: a static chain of ten, a moving joint, and a million times at once."""

from functools import reduce

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from benchmarks._harness import compare, rate
from transect.geometry import se3
from transect.recording.frames import FrameTree

CHAIN_DEPTH = 10
POSE_COUNT = 150_000
"""A 25-minute traverse at 100 Hz."""

START_NS = 1_657_000_000_000_000_000
STEP_NS = 10_000_000
SINGLE_LOOKUPS, JOINT_LOOKUPS, BATCH_LOOKUPS = 100_000, 10_000, 1_000_000


def poses(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, positions and quaternions of a random walk."""
    turns = Rotation.from_rotvec(np.cumsum(rng.normal(scale=0.01, size=(POSE_COUNT, 3)), axis=0))
    places = np.cumsum(rng.normal(scale=0.01, size=(POSE_COUNT, 3)), axis=0)
    return START_NS + np.arange(POSE_COUNT) * STEP_NS, places, turns.as_quat()


def chain(rng: np.random.Generator) -> list[np.ndarray]:
    return [se3.from_quaternion(rng.normal(size=4), rng.normal(size=3)) for _ in range(CHAIN_DEPTH)]


def built(links: list[np.ndarray], track: tuple[np.ndarray, np.ndarray, np.ndarray]) -> FrameTree:
    """A map in which f0 moves, and f1 ... f10 fixed one to the other on it."""
    tree = FrameTree()
    tree.add_moving("map", "f0", *track)
    for k, link in enumerate(links):
        tree.add_static(f"f{k}", f"f{k + 1}", link)
    return tree


def main() -> None:
    rng = np.random.default_rng(0)
    links, track = chain(rng), poses(rng)
    tree = built(links, track)
    bench_static(tree, links)
    times = rng.integers(START_NS, START_NS + (POSE_COUNT - 1) * STEP_NS, BATCH_LOOKUPS)
    bench_moving(tree, times[:JOINT_LOOKUPS].tolist())
    bench_vector(tree, links, track, times)


def bench_static(tree: FrameTree, links: list[np.ndarray]) -> None:
    lookup = tree.lookup

    def ours() -> None:
        for _ in range(SINGLE_LOOKUPS):
            lookup("f0", f10)

    def peer() -> None:
        for _ in range(SINGLE_LOOKUPS):
            reduce(np.matmul, links)

    f10 = f"f{CHAIN_DEPTH}"
    rate("static 10-deep chain", ours, SINGLE_LOOKUPS, target=1_000_000)
    compare("static 10-deep chain / numpy matmuls", ours, peer, repeat=3)


def bench_moving(tree: FrameTree, times: list[int]) -> None:
    lookup, f10 = tree.lookup, f"f{CHAIN_DEPTH}"

    def ours() -> None:
        for t in times:
            lookup("map", f10, t)

    def backwards() -> None:
        for t in times:
            lookup(f10, "map", t)

    def vectors() -> None:
        for t in times:
            lookup("map", f10, np.array([t]))

    rate("moving joint, one time", ours, len(times), target=50_000)
    rate("moving joint, one time, inverse", backwards, len(times), target=50_000)
    compare("moving joint, one time / our vector path", ours, vectors, repeat=2)


def bench_vector(
    tree: FrameTree,
    links: list[np.ndarray],
    track: tuple[np.ndarray, np.ndarray, np.ndarray],
    times: np.ndarray,
) -> None:
    f10 = f"f{CHAIN_DEPTH}"
    ordered = np.sort(times)
    rate(
        "moving joint, 1e6 random times",
        lambda: tree.lookup("map", f10, times),
        BATCH_LOOKUPS,
        target=1_000_000,
    )
    rate(
        "moving joint, 1e6 sorted times",
        lambda: tree.lookup("map", f10, ordered),
        BATCH_LOOKUPS,
        target=1_000_000,
    )

    t_ns, places, quaternions = track
    slerp = Slerp((t_ns - START_NS) * 1e-9, Rotation.from_quat(quaternions))
    fixed = reduce(np.matmul, links)

    def peer() -> np.ndarray:
        seconds = (times - START_NS) * 1e-9
        result = np.zeros((BATCH_LOOKUPS, 4, 4))
        result[:, :3, :3] = slerp(seconds).as_matrix()
        for axis in range(3):
            result[:, axis, 3] = np.interp(seconds, (t_ns - START_NS) * 1e-9, places[:, axis])
        result[:, 3, 3] = 1.0
        return result @ fixed

    np.testing.assert_allclose(tree.lookup("map", f10, times), peer(), atol=1e-6)
    compare("1e6 random times / scipy Slerp + numpy", lambda: tree.lookup("map", f10, times), peer, repeat=3)


if __name__ == "__main__":
    main()
