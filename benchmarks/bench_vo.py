"""Visual odometry: a real street and turn (KITTI 06), simulated streets and soybean rows, and one camera.

Nodes get rectified images from memory, libraries use one thread each, and all code is warm. The whole command
is a separate process, with its imports, decoding, evaluation and figures. Simulated days are cached in
``TRANSECT_BENCH_DAYS`` (or the folder for temporary files).

KITTI's street and turn are real. The ground truth of both was used while the lens calibration was chosen, and
that of the street driven again (revisit) while tracking in left images alone was developed. Simulated streets
are points with noise, not images; the worn lens has all distortions that were fitted to KITTI 06. Rosario and
Etna are rendered. The seeds of kilometres, Rosario and Etna were drawn after the method was chosen on others.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

import transect
from benchmarks._harness import quality
from benchmarks.streets import (
    BASELINE_M,
    BENT,
    FOCAL_PX,
    HEIGHT_PX,
    IDEAL,
    WIDTH_PX,
    WORN,
    Drive,
    K,
    Lens,
    Street,
    length,
    odometry,
    street,
    trajectory,
    turning,
)  # fmt: skip
from transect.algorithms.calibration.stereo_information import Rig as PairRig
from transect.algorithms.calibration.stereo_information import undistort_pixels
from transect.algorithms.calibration.stereo_self_calibration import PairCalibrator
from transect.algorithms.odometry.stereo_odometer import StereoOdometrySettings
from transect.engine.determinism import one_thread_per_library
from transect.evaluation.association import associate
from transect.evaluation.body_frames import at_frame_of
from transect.evaluation.positions.streams import trajectory_of
from transect.evaluation.relative_motions import SegmentErrors, segment_errors
from transect.evaluation.trajectory_errors import travelled_distance
from transect.nodes.image.rectification import StereoRectification
from transect.nodes.stereo.stereo_odometry import (
    DescriptorTracks,
    KltFrameToFrame,
    KltKeyframes,
    StereoOdometry,
)
from transect.nodes.stereo.stereo_offset_calibration import TwoPassOffset
from transect.recording import Recording
from transect.simulation.day import WorldOptions, simulate, write_day
from transect.types import CameraModel, Pose, StereoPair, Trajectory

DATA_DIR = Path(os.environ.get("TRANSECT_TEST_DATA") or "../shared/data")
KITTI, TURN, REVISIT = (DATA_DIR / name for name in ("kitti_raw_06", "kitti_06_turn", "kitti_06_revisit"))
"""A street; a turn of 148 deg at up to 37 deg/s, 31 m; the street in a second drive."""
SIMULATED = Path(os.environ.get("TRANSECT_BENCH_DAYS") or Path(tempfile.gettempdir()) / "sim")
STREET, FIELD, JUNCTION = (10.0, 20.0, 30.0, 40.0, 50.0), (5.0, 10.0, 20.0), (10.0, 20.0)
"""Lengths of segments, m."""
SEEDS, ETNA_SEEDS = (301, 302, 303), (304, 305, 306)
MIN_FRAMES_PER_S, DAY_S, ETNA_DAY_S, ETNA_SCALE, ETNA_IMAGE_STEP = 25.0, 30.0, 66.0, 0.35, 8
"""Required frame rate; duration for 20 m; on Etna a scale of the images, and every eighth image."""
RUN_COUNT, COMMAND_COUNT = 3, 10
"""Repetitions; the shortest time is reported: a street of 56 pairs takes two seconds."""
MAX_ERROR_BEYOND_SLIP_PERCENT = 2.0
"""An inertial system has no slip."""
TURNS = ((70, 30), (-90, 35), (90, 40), (-120, 45))
"""Angles (deg) and turn rates (deg/s) of simulated junctions."""
LENSES = {"no distortion": IDEAL, "radial distortion": BENT, "KITTI's distortion": WORN}
STREET_SEEDS, STREET_LENGTH_M = (401, 402), 1000.0
KEYFRAMES = StereoOdometrySettings()
CAMERA = CameraModel(
    "right", WIDTH_PX, HEIGHT_PX, K, P=np.hstack([K, [[-FOCAL_PX * BASELINE_M], [0.0], [0.0]]])
)
PAIR = PairRig.of(CAMERA)
CALIBRATION_STEP = 3
"""The calibration uses every third step, as in visual_odometry.yaml."""


@dataclass(frozen=True)
class TimedErrors:
    """Segment errors, and CPU and wall time per frame, ms."""

    errors: SegmentErrors
    cpu_ms: float
    wall_ms: float


def rectified(recording: Recording, left: str, right: str) -> list[StereoPair]:
    """Return all pairs of two streams, rectified."""
    node = StereoRectification()
    node.ctx.frames = recording.frames
    both = zip(recording[left], recording[right], strict=False)
    return [node(StereoPair(a.value, b.value, a.value.t_ns)) for a, b in both]


def calibrated(pairs: list[StereoPair]) -> tuple[list[StereoPair], float]:
    """Return pairs without the constant disparity error, and its size in px."""
    node = TwoPassOffset(stride=CALIBRATION_STEP)
    for node.ctx.pass_index in (0, 1):
        results = [node(pair) for pair in pairs]
        node.finish()
    return [each.calibratedStereoPair for each in results], results[-1].offset


def run_odometry(node: StereoOdometry, recording: Recording, pairs: list[StereoPair], lengths) -> TimedErrors:
    """Run an odometry on pairs, and compare it with the ground truth."""
    with one_thread_per_library():
        for pair in pairs[:4]:
            node(pair.left, pair.right)
        node.reset()
        cpu, wall, poses = time.process_time(), time.perf_counter(), list[Pose]()
        for pair in pairs:
            node.ctx.time = pair.t_ns
            result = node(pair.left, pair.right)
            poses += [result.pose] if result.success else []
        took = 1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - wall)
    return TimedErrors(against_truth(recording, poses, lengths), took[0] / len(pairs), took[1] / len(pairs))


def against_truth(recording: Recording, poses: list[Pose], lengths) -> SegmentErrors:
    """Return the errors of all segments, with poses in the frame of the ground truth."""
    truth = trajectory_of(recording.truth)
    moved = at_frame_of(truth, as_trajectory(poses), recording.frames).estimate
    return segment_errors(associate(truth, moved, by="interpolate", max_diff=0.06), lengths, every=1)


def as_trajectory(poses: list[Pose]) -> Trajectory:
    return Trajectory(
        np.array([pose.t_ns for pose in poses]),
        np.array([pose.position for pose in poses]),
        np.array([pose.orientation for pose in poses]),
        child=poses[0].child,
    )


def bench_street() -> None:
    recording = transect.open(KITTI)
    pairs = rectified(recording, "image_00", "image_01")
    calibrated(pairs[:CALIBRATION_STEP])
    start = time.process_time()
    corrected, offset = calibrated(pairs)
    took = 1e3 * (time.process_time() - start) / len(pairs)
    quality("KITTI 06, offset of all disparities that was found", offset, "px")
    quality("KITTI 06, finding it, CPU", took, "ms/frame")
    for node in (KltKeyframes(), KltFrameToFrame(), DescriptorTracks()):
        name, main = f"KITTI 06, {type(node).__name__}", type(node) is KltKeyframes
        quality(f"{name}, offset left in", run_odometry(node, recording, pairs, STREET).errors.percent, "%")
        result = min(
            (run_odometry(node, recording, corrected, STREET) for _ in range(RUN_COUNT)),
            key=lambda r: r.wall_ms,
        )
        quality(f"{name}, offset taken off", result.errors.percent, "%", at_most=0.8 if main else None)
        quality(f"{name}, rotation", result.errors.degrees_per_metre, "deg/m")
        quality(f"{name}, CPU", result.cpu_ms, "ms/frame")
        quality(
            f"{name}, speed", 1e3 / result.wall_ms, "frames/s", at_least=MIN_FRAMES_PER_S if main else None
        )


def bench_command() -> None:
    """`transect run VisualOdometry`, from the start of Python to the last figure."""
    with tempfile.TemporaryDirectory() as folder:
        costs = [time_command(Path(folder) / str(number)) for number in range(COMMAND_COUNT)]
    wall, cpu = (min(each) for each in zip(*costs, strict=True))
    frames = len(transect.open(KITTI)["image_00"])
    quality("KITTI 06, whole command", frames / wall, "frames/s", at_least=MIN_FRAMES_PER_S)
    quality("KITTI 06, whole command, wall", wall, "s")
    quality("KITTI 06, whole command, CPU of all its processes", cpu, "s")


def time_command(out: Path) -> tuple[float, float]:
    """Wall and CPU time of one command and the processes that it starts, in seconds."""
    script = "from transect.cli import main; main()"
    command = [sys.executable, "-c", script, "run", "VisualOdometry", str(KITTI), "-o", str(out)]
    wall, cpu = time.perf_counter(), cpu_of_children()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - wall, cpu_of_children() - cpu


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def bench_cut(title: str, folder: Path, segments: tuple[float, ...], limits: tuple[float, float]) -> None:
    """Evaluate a part of a real drive, whose ground truth is a separate file; limits are in percent."""
    pairs = rectified(transect.open(folder), "image_00", "image_01")
    truth = trajectory_of(transect.open(next(folder.glob("*.tum"))).truth)
    corrected, _ = calibrated(pairs)
    for node in (KltKeyframes(), KltFrameToFrame(), DescriptorTracks()):
        for name, images in (("lens left in", pairs), ("lens taken out", corrected)):
            poses = list[Pose]()
            with one_thread_per_library():
                node.reset()
                for pair in images:
                    node.ctx.time = pair.t_ns
                    poses.append(node(pair.left, pair.right).pose)
            both = associate(truth, as_trajectory(poses))
            percent = segment_errors(both, segments, every=1).percent
            lengths = [travelled_distance(each.positions)[-1] for each in (both.estimate, both.reference)]
            bars = limits if images is corrected else (None, None)
            quality(f"{title}, {type(node).__name__}, {name}", percent, "%", at_most=bars[0])
            off = 100 * abs(lengths[0] / lengths[1] - 1)
            quality(f"{title}, {type(node).__name__}, {name}, length", off, "%", at_most=bars[1])


def bench_junctions() -> None:
    """Evaluate simulated junction turns, with lens distortion that is estimated from the drive."""
    for title, lens in LENSES.items():
        worst, longest = 0.0, 0.0
        for degrees, rate in TURNS:
            poses = turning(degrees, rate)
            found, percent = run_simulated(poses, lens, abs(degrees), JUNCTION)
            worst, longest = max(worst, percent), max(longest, 100 * abs(length(found) / length(poses) - 1))
        quality(f"simulated junctions, {title}, worst of {len(TURNS)}", worst, "%", at_most=1.4)
        quality(f"simulated junctions, {title}, worst length", longest, "%", at_most=1.0)


def bench_kilometre() -> None:
    """Evaluate a simulated kilometre of streets with bends and junctions, with KITTI's segment lengths."""
    for title, lens in LENSES.items():
        for seed in STREET_SEEDS:
            _, percent = run_simulated(street(STREET_LENGTH_M, seed), lens, seed, None)
            quality(f"simulated kilometre {seed}, {title}", percent, "%", at_most=0.65)


def run_simulated(poses: np.ndarray, lens: Lens, seed: int, lengths) -> tuple[np.ndarray, float]:
    """Return poses of a simulated drive after self-calibration, and the segment error in percent."""
    found = odometry(calibrated_drive(poses, lens, seed), KEYFRAMES)
    errors = segment_errors(associate(trajectory(poses), trajectory(found)), lengths, every=1)
    return found, errors.percent


def calibrated_drive(poses: np.ndarray, lens: Lens, seed: int) -> Drive:
    """Return a drive whose pixels are corrected by self-calibration."""
    world = Street(poses, seed)
    errors = self_calibrate(Drive(poses, world, lens, seed=seed))
    return Drive(poses, world, lens, seed=seed + 1, correct=lambda seen: undistort_pixels(seen, PAIR, errors))


def self_calibrate(drive: Drive) -> np.ndarray:
    """Return the calibration errors estimated from a drive, with the steps of visual_odometry.yaml."""
    calibrator = PairCalibrator()
    for k in range(0, len(drive.poses) - 1, CALIBRATION_STEP):
        calibrator.add(drive.step(k), CAMERA)
    calibrator.relinearise()
    return calibrator.errors


def bench_field() -> None:
    for seed in SEEDS:
        recording = kept_day("rosario", f"rosario-{seed}", WorldOptions(seconds=DAY_S, seed=seed))
        pairs = rectified(recording, "Zed/Left", "Zed/Right")
        corrected, offset = calibrated(pairs)
        name = f"simulated Rosario {seed}, KltKeyframes"
        result = run_odometry(KltKeyframes(), recording, pairs, FIELD)
        quality(f"{name}, offset left in", result.errors.percent, "%")
        result = run_odometry(KltKeyframes(), recording, corrected, FIELD)
        quality(f"{name}, {offset:.2f} px taken off", result.errors.percent, "%", at_most=0.5)
        quality(f"{name}, CPU", result.cpu_ms, "ms/frame")


def bench_etna() -> None:
    streams = ("MainCam", "*Arm/*", "Gnss/*", "Platform/MotorEncoders")
    for seed in ETNA_SEEDS:
        options = WorldOptions(seconds=ETNA_DAY_S, seed=seed, scale=ETNA_SCALE, streams=streams)
        recording = kept_day("etna", f"etna-mono-{seed}", options, every=ETNA_IMAGE_STEP)
        slip = mean_slip(recording)
        quality(f"simulated Etna {seed}, mean slip of the wheels", slip, "%")
        name = f"simulated Etna {seed}, Mono with lengths from"
        judge_mono(f"{name} wheels", recording, "Mono", slip + MAX_ERROR_BEYOND_SLIP_PERCENT)
        judge_mono(f"{name} an inertial system", recording, "MonoIns", MAX_ERROR_BEYOND_SLIP_PERCENT)


def judge_mono(name: str, recording: Recording, implementation: str, limit: float) -> None:
    """Run mono odometry, and compare it with the ground truth; the limit is in percent."""
    run = transect.run(f"VisualOdometry/{implementation}", recording)
    errors = against_truth(recording, run["pose"].values, FIELD)
    quality(name, errors.percent, "%", at_most=limit)
    quality(f"{name}, rotation", errors.degrees_per_metre, "deg/m")


def mean_slip(recording: Recording) -> float:
    """Return the mean slip: excess of the rim's path over that on the ground, in percent."""
    rim, ground = (np.array(list(each)) for each in columns(recording, "rim", "ground"))
    return float(100 * (np.abs(rim).sum() / np.abs(ground).sum() - 1))


def columns(recording: Recording, *names: str) -> Iterator[list[list[float]]]:
    for name in names:
        yield recording["truth/slip"].table[name].to_pylist()


def kept_day(world: str, name: str, options: WorldOptions, every: int = 1) -> Recording:
    """Return a simulated day with every nth image and cloud; simulated once, then read from disk."""
    folder = SIMULATED / name
    if not folder.is_dir():
        day = simulate(world, options)
        downsampled = tuple(
            stream.take(np.arange(len(stream)) % every == 0) if stream.loader is not None else stream
            for stream in day.recording.streams
        )
        write_day(replace(day, recording=day.recording.replace(streams=downsampled)), folder)
    return transect.open(folder)


def main() -> None:
    pools = ", ".join(f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info())
    print(f"  threads: 1 in every library while a node runs; else {pools}")
    bench_command()
    bench_street()
    bench_cut("KITTI 06 turn", TURN, JUNCTION, (1.4, 1.0))
    bench_cut("KITTI 06 revisit", REVISIT, STREET, (0.8, 1.0))
    bench_junctions()
    bench_kilometre()
    bench_field()
    bench_etna()


if __name__ == "__main__":
    main()
