"""Self-calibration of residual lens distortion on simulated drives of a kilometre, and on rendered crop rows.

Points of a street or of crop rows are projected by OpenCV's camera model with distortion of 0, 2, 5 and 9 px
at the edge of the images, and tracked with noise, outliers, and a lag of 0.1 % of the image motion that all
steps have in common. The odometry gets pixels corrected by the estimated calibration errors. The rendered
drive runs the whole pipeline on images of the Rosario world, 18 m along rows of soybeans.
"""

import re
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import transect
from benchmarks._harness import quality
from benchmarks.bench_vo import (
    CALIBRATION_STEP,
    CAMERA,
    FIELD,
    KEYFRAMES,
    PAIR,
    SIMULATED,
    against_truth,
    kept_day,
)
from benchmarks.streets import (
    CropRows,
    Drive,
    Lens,
    Street,
    edge_lens,
    odometry,
    straight,
    street,
    trajectory,
)
from transect.algorithms.calibration.stereo_information import undistort_pixels
from transect.algorithms.calibration.stereo_self_calibration import PairCalibrator
from transect.engine.determinism import one_thread_per_library
from transect.evaluation.association import associate
from transect.evaluation.relative_motions import segment_errors
from transect.evaluation.trajectory_errors import absolute_error
from transect.simulation.day import WorldOptions

DRIVE_LENGTH_M, SEED, FLOW_BIAS = 1000.0, 611, 0.001
ERRORS_PX = (0.0, 2.0, 5.0, 9.0)
WORLDS = {
    "straight street": (straight(DRIVE_LENGTH_M, SEED), Street),
    "winding street": (street(DRIVE_LENGTH_M, SEED), Street),
    "crop rows": (straight(DRIVE_LENGTH_M, SEED, speed=8.0, pitch=0.25), CropRows),
}
RENDERED_SEED, RENDERED_SECONDS, K1_ERROR = 301, 20.0, 0.0192
"""An error of 0.0192 in k1 moves the edges of the rectified images by some 10 px."""


def self_calibrate(poses: np.ndarray, world: Street, lens: Lens) -> PairCalibrator:
    """Return the self-calibration from a drive, with the steps of visual_odometry.yaml."""
    drive, calibrator = Drive(poses, world, lens, seed=SEED, flow_bias=FLOW_BIAS), PairCalibrator()
    for k in range(0, len(poses) - 1, CALIBRATION_STEP):
        if not calibrator.is_settled(0.02, 0.5):
            calibrator.add(drive.step(k), CAMERA)
    calibrator.relinearise()
    return calibrator


def evaluate_drive(poses: np.ndarray, world: Street, lens: Lens, errors: np.ndarray) -> tuple[float, float]:
    """Return the segment error over 100 to 800 m in percent, and the ATE in m, with errors removed."""
    drive = Drive(
        poses, world, lens, seed=SEED + 1, correct=lambda seen: undistort_pixels(seen, PAIR, errors)
    )
    pairs = associate(trajectory(poses), trajectory(odometry(drive, KEYFRAMES)))
    return segment_errors(pairs).percent, absolute_error(pairs, "se3").statistics.rmse


def bench_world(title: str) -> None:
    poses, kind = WORLDS[title]
    world = kind(poses, SEED)
    for pixels in ERRORS_PX:
        lens, name = edge_lens(pixels), f"simulated {title}, {pixels:.0f} px"
        began = time.process_time()
        found = self_calibrate(poses, world, lens)
        took = time.process_time() - began
        quality(f"{name}: estimate", found.lens.edge_px, "px")
        quality(f"{name}: standard deviation", found.lens.sigma_px, "px")
        quality(f"{name}: frames looked at", len(found.frames), "")
        quality(f"{name}: CPU with simulation", took, "s")
        percent, ate = evaluate_drive(poses, world, lens, found.errors)
        if found.errors.any():
            raw_percent, raw_ate = evaluate_drive(poses, world, lens, np.zeros_like(found.errors))
        else:
            raw_percent, raw_ate = percent, ate
        quality(f"{name}: segment error without correction", raw_percent, "%")
        bar = raw_percent / 2 if found.errors.any() else None
        quality(f"{name}: segment error with correction", percent, "%", at_most=bar)
        quality(f"{name}: ATE without correction", raw_ate, "m")
        quality(f"{name}: ATE with correction", ate, "m")


def bench_rendered() -> None:
    """Evaluate rendered rows of soybeans, with a correct and a wrong k1 in the calibration."""
    options = WorldOptions(seconds=RENDERED_SECONDS, seed=RENDERED_SEED, streams=("Zed*",))
    kept_day("rosario", f"rosario-lens-{RENDERED_SEED}", options)
    right = SIMULATED / f"rosario-lens-{RENDERED_SEED}"
    with tempfile.TemporaryDirectory() as folder:
        wrong = Path(folder) / "wrong"
        shutil.copytree(right, wrong)
        calibration = wrong / "calibration00.yaml"
        text, coefficient = calibration.read_text(), re.compile(r"(distortion_coeffs: \[)(-?[\d.]+)")
        calibration.write_text(
            coefficient.sub(lambda found: f"{found[1]}{float(found[2]) - K1_ERROR:.6f}", text)
        )
        for title, path in (("calibrated", right), (f"k1 wrong by {K1_ERROR}", wrong)):
            for undistort in (False, True):
                recording = transect.open(path)
                run = transect.run("VisualOdometry", recording, set={"calibration.undistort": undistort})
                percent = against_truth(recording, run["pose"].values, FIELD).percent
                which = "with" if undistort else "without"
                quality(f"rendered Rosario, {title}: segment error {which} correction", percent, "%")
                for conclusion in run.conclusions:
                    print(f"  {conclusion.text}")


def main() -> None:
    with one_thread_per_library():
        for title in WORLDS:
            bench_world(title)
    bench_rendered()


if __name__ == "__main__":
    main()
