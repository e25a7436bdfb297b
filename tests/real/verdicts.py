"""Recordings for `test_verdicts.py`: all real ones, what is derived of them, and simulated days."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from benchmarks.integrity.bases import SIMULATED

import transect
from transect import formats
from transect.integrity import check
from transect.integrity.report import report_sensors
from transect.integrity.runner import checkable
from transect.recording import Recording

Make = Callable[[Path, Path], Recording]
"""From the folder of the data, and one for new files, a recording."""


def whole(name: str, data: Path, _: Path) -> Recording:
    return transect.open(data / name)


def cut(name: str, start: str | None, end: str | None, data: Path, _: Path) -> Recording:
    return transect.open(data / name).slice(start, end)


def every(name: str, step: int, kind: str, data: Path, _: Path) -> Recording:
    """Return the streams of a kind with every so manieth sample."""
    recording = transect.open(data / name)
    kept = (stream for stream in recording if kind in stream.name)
    return recording.replace(streams=tuple(s.take(np.arange(len(s)) % step == 0) for s in kept))


def exported(name: str, to: str, suffix: str, data: Path, new: Path) -> Recording:
    path = new / f"{Path(name).stem}{suffix}"
    formats.write(transect.open(data / name), path, to)
    return transect.open(path)


def simulated(name: str, seed: int, *_: Path) -> Recording:
    return next(base for base in SIMULATED if base.name == name).make(seed)


WHOLE = (
    "bags/evo/ROS_example.bag", "bags/evo/nav2_turtlebot.mcap", "bags/evo/tf_example.bag",
    "bags/robot_localization/test1.bag", "bags/robot_localization/test2.bag",
    "bags/rosbag2/mcap/talker", "bags/rosbag2/mcap/wbag", "bags/rosbag2/sqlite3/talker",
    "bags/rosbag2/sqlite3/wbag", "bags/grid_map/grid_map.bag",
    "boreas_traj/gt", "boreas_traj/pred_3d", "canada_planetary_gps/global-pose-utm.txt",
    "baseprod_rover/kml/2023-07-20_18-12-05.kml", "baseprod_rover/kml/2023-07-22_16-24-27.kml",
    "carmen_2dlaser/aces.clf.bz2", "carmen_2dlaser/fr079.clf.bz2", "carmen_2dlaser/mit-csail.clf.bz2",
    "carmen_2dlaser/ual_dataset_2014_05_23_2dlaser_odo.rawlog",
    "carmen_corrected/belgioioso-corrected.log.gz", "carmen_corrected/edmonton-corrected.log.gz",
    "carmen_corrected/freiburg-101-corrected.log.gz", "carmen_corrected/seattle-corrected.log.gz",
    "euroc_v101", "gtsam_data/KittiGps_converted.txt", "gtsam_data/quadraped_imu_data.csv",
    "kitti_06_revisit", "kitti_06_turn", "kitti_raw_06", "lidar_gtsam_points", "nmea/nmea.log",
    "nuscenes_scene0006", "radiate_fog", "rock_logs/msgpack", "rock_logs/pocolog",
    "rosario_gt_odom/flourish_DatasetA_GT.txt",
    *(f"rosario_gt_odom/sequence0{k}_new_gt_IMU_frame.txt" for k in (1, 3, 4)),
    "trajectories_evo/KITTI_00_gt.txt", "trajectories_evo/V102.txt", "trajectories_evo/V102_groundtruth.csv",
    "trajectories_evo/fr2_desk_ORB.txt", "trajectories_evo/fr2_desk_ORB_kf_mono.txt",
    "trajectories_evo/fr2_desk_groundtruth.txt",
    *(f"trajectories_evo/freiburg1_xyz-{name}.txt"
      for name in ("ORB_kf_mono", "groundtruth", "rgbdslam", "rgbdslam_drift", "rgbdslam_drift_short")),
    "trajectories_evo/georeferenced.tum",
)  # fmt: skip
LASERS = "carmen_2dlaser"
CUTS = (
    (f"{LASERS}/aces.clf.bz2", "+190s", "+260s"), (f"{LASERS}/aces.clf.bz2", "+900s", "+960s"),
    (f"{LASERS}/aces.clf.bz2", "+1170s", "+1210s"), (f"{LASERS}/fr079.clf.bz2", "+290s", "+330s"),
    (f"{LASERS}/ual_dataset_2014_05_23_2dlaser_odo.rawlog", "+20s", "+60s"),
    (f"{LASERS}/ual_dataset_2014_05_23_2dlaser_odo.rawlog", "+130s", "+155s"),
    ("bags/robot_localization/test2.bag", "+20s", "+50s"),
    ("bags/evo/nav2_turtlebot.mcap", "+52s", "+95s"),
    ("rosario_gt_odom/sequence01_new_gt_IMU_frame.txt", "+100s", "+200s"),
    ("boreas_traj/gt", "+300s", "+500s"),
)  # fmt: skip
RECORDINGS: dict[str, Make] = {
    **{name: partial(whole, name) for name in WHOLE},
    **{f"{name} {start} to {end}": partial(cut, name, start, end) for name, start, end in CUTS},
    **{
        f"{name}, every {step}. image": partial(every, name, step, "image")
        for name in ("kitti_raw_06", "kitti_06_turn", "kitti_06_revisit") for step in (3, 5)
    },
    "test2.bag as mcap": partial(exported, "bags/robot_localization/test2.bag", "mcap", ".mcap"),
    "test2.bag as csv": partial(exported, "bags/robot_localization/test2.bag", "csv", ""),
    "test2.bag as parquet": partial(exported, "bags/robot_localization/test2.bag", "parquet", ""),
    "nmea.log as gpx": partial(exported, "nmea/nmea.log", "gpx", ".gpx"),
    "georeferenced.tum as csv": partial(exported, "trajectories_evo/georeferenced.tum", "csv", ""),
    "fr2_desk_ORB.txt as csv": partial(exported, "trajectories_evo/fr2_desk_ORB.txt", "csv", ""),
    **{
        f"simulated {name}, seed {seed}": partial(simulated, name, seed)
        for name, seed in (
            ("yard-laser", 74051), ("human", 74051), ("houses", 74051), ("houses", 9137), ("winding", 74051),
            ("rover", 74051), ("picking", 74051), ("weeder", 74051), ("arm", 74051),
        )
    },
}  # fmt: skip
"""By name: what is checked."""
LONG = (
    "bags/evo/ROS_example.bag", "boreas_traj/gt", "carmen_2dlaser/aces.clf.bz2",
    "carmen_2dlaser/fr079.clf.bz2", "carmen_2dlaser/ual_dataset_2014_05_23_2dlaser_odo.rawlog",
    "carmen_corrected/freiburg-101-corrected.log.gz", "carmen_corrected/seattle-corrected.log.gz",
    "kitti_06_revisit", "kitti_06_revisit, every 3. image", "kitti_06_revisit, every 5. image",
    "kitti_06_turn, every 3. image", "kitti_06_turn, every 5. image", "kitti_raw_06",
    "kitti_raw_06, every 3. image", "test2.bag as mcap", "test2.bag as csv", "test2.bag as parquet",
    "bags/robot_localization/test2.bag",
    "simulated yard-laser, seed 74051", "simulated human, seed 74051", "simulated houses, seed 74051",
    "simulated rover, seed 74051", "simulated arm, seed 74051", "kitti_raw_06, every 5. image",
    "carmen_2dlaser/aces.clf.bz2 +190s to +260s", "carmen_2dlaser/aces.clf.bz2 +1170s to +1210s",
    "simulated houses, seed 9137", "simulated weeder, seed 74051", "simulated winding, seed 74051",
)  # fmt: skip
"""Checked by `python -m benchmarks verdicts` alone: parts of them are among the others, or much alike."""
SHORT = tuple(name for name in RECORDINGS if name not in LONG)


TABLE = Path(__file__).with_name("verdicts.csv")


def explained(name: str = "") -> Iterator[dict[str, str]]:
    """Yield the rows of the table, or those of one recording."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        yield from (row for row in csv.DictReader(file) if name in ("", row["recording"]))


def expected_problems(name: str) -> dict[tuple[str, str, str], str]:
    """Return what `problems_of` a recording must find."""
    return {(row["stream"], row["check"], row["reason"]): row["state"] for row in explained(name)}


def problems_of(recording: Recording) -> dict[tuple[str, str, str], str]:
    """Return by stream, check and reason the worst state that was declared."""
    found: dict[tuple[str, str, str], str] = {}
    for report in report_sensors(check(recording)):
        for problem in (each for each in report.problems if each.state in ("BAD", "SUSPECT")):
            key = (problem.stream, problem.check, problem.reason)
            found[key] = "BAD" if "BAD" in (problem.state, found.get(key)) else problem.state
    return found


def hours_of(recording: Recording) -> float:
    """Return the stream-hours of what is judged; a stream whose clock is broken counts an hour at most."""
    spans = [int(s.t_ns.max() - s.t_ns.min()) / 3.6e12 for s in recording if checkable(s)]
    return sum(min(span, 1.0) for span in spans)
