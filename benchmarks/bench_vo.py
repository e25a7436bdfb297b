"""Visual odometry: a real street (KITTI 06), simulated soybean rows, and one camera on simulated Etna.

Images are in memory and rectified, libraries have one thread each, and everything was called once before.
Simulated days are kept in ``TRANSECT_BENCH_DAYS`` (or the folder for temporary files) for the next time.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

import transect
from benchmarks._harness import quality
from transect.engine.determinism import one_thread_per_library
from transect.evaluation.association import associate
from transect.evaluation.framing import at_frame_of
from transect.evaluation.loading import trajectory_of
from transect.evaluation.segments import SegmentErrors, segment_errors
from transect.nodes.stereo.stereo_odometry import (
    DescriptorTracks,
    KltFrameToFrame,
    KltKeyframes,
    StereoOdometry,
)
from transect.nodes.stereo.stereo_offset_calibration import TwoPassOffset
from transect.nodes.stereo.stereo_rectification import StereoRectification
from transect.recording import Recording
from transect.simulation.day import Options, simulate, write_day
from transect.types import Image, Pose, StereoPair, Trajectory

KITTI = Path(os.environ.get("TRANSECT_TEST_DATA") or "../shared/data") / "kitti_raw_06"
SIMULATED = Path(os.environ.get("TRANSECT_BENCH_DAYS") or Path(tempfile.gettempdir()) / "sim")
STREET, FIELD = (10.0, 20.0, 30.0, 40.0, 50.0), (5.0, 10.0, 20.0)
"""Lengths of segments, m."""
SEEDS, ETNA_SEEDS = (101, 102, 103), (107, 108, 109)
FASTEST, SECONDS, ETNA_SECONDS, ETNA_SCALE, ETNA_EVERY = 25.0, 30.0, 66.0, 0.35, 8
"""Frames/s that are asked for; seconds that last for 20 m; on Etna smaller and every eighth image."""
RUNS = 3
"""Of which the fastest counts: a street of 56 pairs takes two seconds."""
BEYOND_SLIP = 2.0
"""Percent; an inertial system does not slip."""
CELL, STRIDE = 32, 3
"""Pixels: squares of the calibration; and of how many steps it looks at one, as in visual_odometry.yaml."""


@dataclass(frozen=True)
class Result:
    """Segment errors, and what a frame took: CPU and wall time in ms."""

    errors: SegmentErrors
    cpu_ms: float
    wall_ms: float


def rectified(recording: Recording, left: str, right: str) -> list[StereoPair]:
    """All pairs of two streams, in memory."""
    node = StereoRectification()
    node.ctx.frames = recording.frames
    both = zip(recording[left], recording[right], strict=False)
    return [node(StereoPair(a.value, b.value, a.value.t_ns)) for a, b in both]


def calibrated(pairs: list[StereoPair]) -> tuple[list[StereoPair], float]:
    """The pairs with the offset of their disparities taken off, and how large it was (px)."""
    node = TwoPassOffset(cell=CELL, stride=STRIDE)
    for node.ctx.pass_index in (0, 1):
        said = [node(pair) for pair in pairs]
    return [each.calibratedStereoPair for each in said], said[-1].offset


def driven(node: StereoOdometry, recording: Recording, pairs: list[StereoPair], lengths) -> Result:
    """Run an odometry over pairs, and hold it against the truth."""
    with one_thread_per_library():
        for pair in pairs[:4]:
            node(pair.left, pair.right)
        node.reset()
        cpu, wall, poses = time.process_time(), time.perf_counter(), list[Pose]()
        for pair in pairs:
            node.ctx.time = pair.t_ns
            moved = node(pair.left, pair.right)
            poses += [moved.pose] if moved.success else []
        took = 1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - wall)
    return Result(against_truth(recording, poses, lengths), took[0] / len(pairs), took[1] / len(pairs))


def against_truth(recording: Recording, poses: list[Pose], lengths) -> SegmentErrors:
    """Errors of all segments, each pose moved to the frame that the truth is of."""
    found = Trajectory(
        np.array([pose.t_ns for pose in poses]),
        np.array([pose.position for pose in poses]),
        np.array([pose.orientation for pose in poses]),
        child=poses[0].child,
    )
    truth = trajectory_of(recording.truth)
    moved = at_frame_of(truth, found, recording.frames).estimate
    return segment_errors(associate(truth, moved, by="interpolate", max_diff=0.06), lengths, every=1)


def bench_street() -> None:
    recording = transect.open(KITTI)
    pairs = rectified(recording, "image_00", "image_01")
    calibrated(pairs[:STRIDE])
    start = time.process_time()
    mended, offset = calibrated(pairs)
    took = 1e3 * (time.process_time() - start) / len(pairs)
    quality("KITTI 06, offset of all disparities that was found", offset, "px")
    quality("KITTI 06, finding it, CPU", took, "ms/frame")
    for node in (KltKeyframes(), KltFrameToFrame(), DescriptorTracks()):
        name, main = f"KITTI 06, {type(node).__name__}", type(node) is KltKeyframes
        quality(f"{name}, offset left in", driven(node, recording, pairs, STREET).errors.percent, "%")
        result = min((driven(node, recording, mended, STREET) for _ in range(RUNS)), key=lambda r: r.wall_ms)
        quality(f"{name}, offset taken off", result.errors.percent, "%", at_most=0.8 if main else None)
        quality(f"{name}, rotation", result.errors.degrees_per_metre, "deg/m")
        quality(f"{name}, CPU", result.cpu_ms, "ms/frame")
        quality(f"{name}, speed", 1e3 / result.wall_ms, "frames/s", at_least=FASTEST if main else None)


def bench_field() -> None:
    for seed in SEEDS:
        recording = kept_day("rosario", f"rosario-{seed}", Options(seconds=SECONDS, seed=seed))
        pairs = rectified(recording, "Zed/Left", "Zed/Right")
        mended, offset = calibrated(pairs)
        name = f"simulated Rosario {seed}, KltKeyframes"
        result = driven(KltKeyframes(), recording, pairs, FIELD)
        quality(f"{name}, offset left in", result.errors.percent, "%")
        result = driven(KltKeyframes(), recording, mended, FIELD)
        quality(f"{name}, {offset:.2f} px taken off", result.errors.percent, "%", at_most=0.5)
        quality(f"{name}, CPU", result.cpu_ms, "ms/frame")


def bench_etna() -> None:
    streams = ("MainCam", "*Arm/*", "Gnss/*", "Platform/MotorEncoders")
    for seed in ETNA_SEEDS:
        options = Options(seconds=ETNA_SECONDS, seed=seed, scale=ETNA_SCALE, streams=streams)
        recording = kept_day("etna", f"etna-mono-{seed}", options, every=ETNA_EVERY)
        slip = mean_slip(recording)
        quality(f"simulated Etna {seed}, mean slip of the wheels", slip, "%")
        name = f"simulated Etna {seed}, Mono with lengths from"
        judge_mono(f"{name} wheels", recording, "Mono", slip + BEYOND_SLIP)
        judge_mono(f"{name} an inertial system", recording, "MonoIns", BEYOND_SLIP)


def judge_mono(name: str, recording: Recording, implementation: str, limit: float) -> None:
    """Run one camera's odometry, and hold it against the truth; the limit is in percent."""
    run = transect.run(f"VisualOdometry/{implementation}", recording)
    errors = against_truth(recording, run["pose"].values, FIELD)
    quality(name, errors.percent, "%", at_most=limit)
    quality(f"{name}, rotation", errors.degrees_per_metre, "deg/m")


def mean_slip(recording: Recording) -> float:
    """How much farther the rims rolled than the ground went by, in percent."""
    rim, ground = (np.array(list(each)) for each in columns(recording, "rim", "ground"))
    return float(100 * (np.abs(rim).sum() / np.abs(ground).sum() - 1))


def columns(recording: Recording, *names: str) -> Iterator[list[list[float]]]:
    for name in names:
        yield recording["truth/slip"].table[name].to_pylist()


def kept_day(world: str, name: str, options: Options, every: int = 1) -> Recording:
    """A simulated day, of which every so manyth image is kept; rendered once, then read."""
    folder = SIMULATED / name
    if not folder.is_dir():
        day = simulate(world, options)
        thinned = tuple(
            stream.take(np.arange(len(stream)) % every == 0) if stream.type is Image else stream
            for stream in day.recording.streams
        )
        write_day(replace(day, recording=day.recording.replace(streams=thinned)), folder)
    return transect.open(folder)


def main() -> None:
    pools = ", ".join(f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info())
    print(f"  threads: 1 in every library while a node runs; else {pools}")
    bench_street()
    bench_field()
    bench_etna()


if __name__ == "__main__":
    main()
