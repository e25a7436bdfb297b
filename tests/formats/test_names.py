"""Names in a log never become paths: writers stay in their folder for any stream name."""

from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transect import formats
from transect.errors import TransectError
from transect.recording import Recording, Stream, arrow
from transect.types import GridMap, Image, Imu, LaserScan, NavFix, PointCloud, Pose, Twist

T_NS = np.array([1, 2, 3]) * 10**9
NAMES = (
    "{outside}/evil", "/{outside}/evil", "../../evil", "a/../../evil", "..", ".", "", "/", "nul\0byte",
    "\ud800lone", "x" * 5000, "x" * 5001, "long/" * 500, "a", "A", "a.csv/b", "a.parquet/b", "recording.yaml",
    "calibration", "C:\\evil", "~/evil", "\x1b[31mred", "\n", "-rf", "truth/../../evil", "mav0", "<script>",
)  # fmt: skip


def columns(kind: type) -> dict[str, Any]:
    one = np.ones(len(T_NS))
    turned = {"qx": 0 * one, "qy": 0 * one, "qz": 0 * one, "qw": one}
    return {
        Pose: {"x": one, "y": one, "z": one, **turned},
        Imu: dict.fromkeys(("wx", "wy", "wz", "ax", "ay", "az"), one),
        NavFix: {"lat": 0.5 * one, "lon": 0.2 * one, "alt": one},
        Twist: dict.fromkeys(("vx", "vy", "vz", "wx", "wy", "wz"), one),
        LaserScan: {"ranges": np.ones((len(T_NS), 8)), "angle_min": -one, "angle_step": one / 4},
    }.get(kind, {})


def payload(kind: type, t_ns: int) -> Any:
    if kind is Image:
        return Image(np.zeros((4, 6), np.uint8), t_ns=t_ns)
    if kind is PointCloud:
        return PointCloud(np.ones((5, 3)), t_ns=t_ns)
    return GridMap({"height": np.ones((3, 4))}, (0.5, 0, 0, 0, -0.5, 0), t_ns=t_ns)


def stream(name: str, kind: type) -> Stream:
    loader = (lambda row: payload(kind, row["t_ns"])) if kind in (Image, PointCloud, GridMap) else None
    return Stream(name, kind, arrow.table(T_NS, columns(kind)), loader=loader)


def recording(outside: Path) -> Recording:
    kinds = (Pose, Image, PointCloud, GridMap, NavFix, Imu, LaserScan, Twist)
    names = [name.format(outside=outside) for name in NAMES]
    # The first few lead elsewhere: each is the name of every kind, the others of one each.
    named = [(f"{name}{'/' * turn}", kind) for turn, kind in enumerate(kinds) for name in names[:5]]
    named += zip(names[5:], cycle(kinds), strict=False)
    streams = [stream(name, kind) for name, kind in named]
    return Recording(names[0], tuple(streams))


@pytest.mark.parametrize("format", formats.writing_names())
def test_writers_stay_in_their_folder_for_any_stream_name(format: str, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "work").mkdir()
    try:
        formats.write(recording(outside), tmp_path / "work" / "out", format)
    except TransectError:
        assert not (tmp_path / "work" / "out").exists()
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in made if path.parts[len(tmp_path.parts) :][:1] != ("work",)] == []
    assert {path.name for path in (tmp_path / "work").iterdir() if path.name.split(".")[0] != "out"} == set()
