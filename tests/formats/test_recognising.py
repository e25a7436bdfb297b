"""Recognising a path is cheap: no format's reader, and no library, is imported for it."""

import json
import subprocess
import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import transect
from transect import formats
from transect.base import plugins
from transect.datasets.ameds.folders.columns import BY_STEM
from transect.datasets.ameds.folders.files import STEMS
from transect.formats.shared.clouds import encode_cloud
from transect.formats.shared.clouds.plain import plausible_layout
from transect.formats.shared.file_heads import looks_like_raw_points
from transect.types import PointCloud

SOURCES = Path(transect.__file__).parent
LIBRARIES = {"numpy", "pyarrow", "scipy", "cv2", "yaml", "rosbags", "matplotlib", "pandas"}


def modules_after(code: str, *arguments: object) -> set[str]:
    """Return the names of the modules that a program has imported when it ends."""
    program = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def scan(path: Path, suffix: str) -> Path:
    rng = np.random.default_rng(0)
    fields = {"intensity": rng.random(2000, np.float32)}
    cloud = PointCloud(rng.uniform(-40, 40, (2000, 3)).astype(np.float32), fields)
    path = path / f"000000{suffix}"
    path.write_bytes(encode_cloud(cloud, suffix))
    return path


def test_recognising_imports_no_library_and_no_reader(tmp_path: Path):
    (tmp_path / "a.txt").write_text("0 0 0 0 0 0 0 1\n" * 30)
    (tmp_path / "b.csv").write_text("x,y,z\n1,2,3\n")
    (tmp_path / "c.bag").write_bytes(b"#ROSBAG V2.0\n" + bytes(100))
    paths = [scan(tmp_path, suffix) for suffix in (".bin", ".pcd")]
    code = "from transect import formats\nfor path in sys.argv[1:]: formats.recognise(path)"
    found = modules_after(code, tmp_path, *paths, *(tmp_path / n for n in ("a.txt", "b.csv", "c.bag")))
    assert {dotted.partition(":")[0] for dotted in plugins.strings("formats").values()} <= found
    assert not found & LIBRARIES
    assert not [n for n in found if n.startswith("transect") and n.endswith(("reading", "writing", "parse"))]
    assert not found & {"transect.recording.recording", "transect.recording.arrow", "transect.types.clouds"}


def test_listing_the_formats_that_write_imports_no_writer():
    found = modules_after("from transect import formats\nassert 'tum' in formats.writing_names()")
    assert not found & LIBRARIES
    assert not [name for name in found if name.startswith("transect") and name.endswith(".writing")]


@pytest.mark.parametrize("suffix", [".bin", ".pcd"])
def test_opening_one_lidar_scan_imports_the_files_of_its_own_format_only(tmp_path: Path, suffix: str):
    code = "import transect\nfor sample in transect.open(sys.argv[1]).streams[0]: sample.value"
    found = modules_after(code, scan(tmp_path, suffix))
    faces = modules_after("from transect import formats\nfor n in formats.names(): formats.load(n)")
    ours = {name for name in found - faces if name.startswith("transect.")}
    of_formats = {name for name in ours if name.startswith("transect.formats.")}
    assert not {name for name in ours if name.startswith("transect.datasets.")}
    others = ("csv", "kitti", "rosbag", "described", "calibration", "euroc", "sdi", "ida")
    assert not {n for n in of_formats if n.startswith(tuple(f"transect.formats.{o}" for o in others))}
    assert "transect.formats.pcd" in of_formats
    assert len(of_formats) <= 15, sorted(of_formats)
    assert len(ours) <= 40, sorted(ours)


@pytest.mark.parametrize("suffix", [".bin", ".pcd"])
def test_one_lidar_scan_goes_from_bytes_to_points_through_at_most_nine_files(tmp_path: Path, suffix: str):
    sample = next(iter(transect.open(scan(tmp_path, suffix)).streams[0]))
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and str(SOURCES) in name:
            files.add(str(Path(name).relative_to(SOURCES)))

    sys.setprofile(note)
    try:
        points = sample.value.points
    finally:
        sys.setprofile(None)
    assert len(points) == 2000
    assert "formats/shared/clouds/points.py" in files
    assert len(files) <= 9, files


def test_the_csv_files_that_ameds_is_recognised_by_are_those_it_reads():
    assert set(BY_STEM) == STEMS


@given(
    hnp.arrays(
        np.float32,
        st.integers(0, 60),
        elements=st.one_of(
            st.integers(0, 300),
            st.sampled_from([-1, 0.5, 1e4, 65536, np.nan, np.inf]),
            st.floats(-50, 50, width=32),
        ),
    ),
    st.integers(0, 3),
)
def test_raw_points_are_recognised_by_the_rules_they_are_read_by(values: np.ndarray, rest: int):
    data = values.astype("<f4").tobytes() + b"\0" * rest
    assert looks_like_raw_points(data) == (plausible_layout(data) is not None)


@pytest.mark.parametrize("name", ["bags/evo/tf_example.bag"])
def test_opening_a_bag_imports_no_other_format(real_data: Path, name: str):
    imported = modules_after("import transect; transect.open(sys.argv[1])", real_data / name)
    ours = {module.split(".")[2] for module in imported if module.startswith("transect.formats.")}
    assert ours - {"shared", "truth"} == {"rosbag"}


def test_a_format_named_by_a_suffix_is_the_one_that_all_formats_would_choose(real_data: Path):
    files = [f for f in sorted((real_data / "bags").rglob("*")) if f.suffix in formats.NAMED_BY_SUFFIX]
    said = {f.name: formats.recognise(f)[0] for f in files}
    sure = {
        name: format
        for name, (format, match) in said.items()
        if match.confidence >= formats.RECOGNITION.min_recording
    }
    assert len(sure) >= 3
    assert set(sure.values()) == {"rosbag"}
