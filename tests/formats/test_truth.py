"""A folder `truth/` beside any recording: attached on opening, never in a reader's way, kept on writing."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.datasets.ameds import sample as ameds_sample
from tests.datasets.insight import sample as ida_sample
from tests.datasets.marulan import sample as sdi_sample
from tests.datasets.rosario import sample as rosario_sample

import transect
from transect import formats
from transect.formats.geotiff import encode_geotiff
from transect.recording import Recording, arrow
from transect.types import GridMap, Pose, Record

TUM = """\
# t x y z qx qy qz qw: the body in the world
{0}.100 1 2 3 0 0 0 1
{0}.110 1.5 2 3 0 0 0.6 0.8
{0}.120 2 2 3 0 0 1 0
"""
CARMEN = (
    "ODOM 1.0 2.0 0.5 0.1 0.0 0.0 976052857.0 host 0.1\n"
    "FLASER 3 1.0 2.0 3.0 1 2 0.5 1 2 0.5 976052857.1 host 0.2\n"
)
KITTI = "1 0 0 0 0 1 0 0 0 0 1 0\n1 0 0 1 0 1 0 0 0 0 1 0\n"


def write_truth(folder: Path, seconds: int = 1224199788) -> Path:
    """Write truth in open formats, as a simulated day has it, and a file that is none of them."""
    folder.mkdir(parents=True)
    (folder / "trajectory.tum").write_text(TUM.format(seconds))
    t_ns = seconds * 10**9 + 10**8 + np.arange(3) * 10**7
    slip = arrow.table(t_ns, {"slip": np.array([0.1, 0.2, 0.3])}, units={"slip": ""})
    pq.write_table(slip, folder / "slip.parquet")
    dem = GridMap({"elevation": np.arange(6.0).reshape(2, 3)}, (0.5, 0.0, 10.0, 0.0, -0.5, 20.0))
    (folder / "dem.tif").write_bytes(encode_geotiff(dem))
    (folder / "depth").mkdir()
    (folder / "depth" / "MainCam_1.npy").write_bytes(b"depth")
    return folder


def one_file(name: str, content: str) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        folder.mkdir()
        (folder / name).write_text(content)

    return write


def rosario(folder: Path) -> None:
    folder.mkdir()
    rosario_sample.write_scripts_layout(folder)


SAMPLES: dict[str, Callable[[Path], object]] = {
    "ameds": ameds_sample.write_sample,
    "sdi": sdi_sample.write_dataset,
    "ida": ida_sample.write_sample,
    "rosario": rosario,
    "tum": one_file("run.tum", TUM.format(1224199788)),
    "kitti": one_file("poses.txt", KITTI),
    "carmen": one_file("lab.clf", CARMEN),
}
NAMES = ("truth/trajectory", "truth/slip", "truth/dem")


def facts(recording: Recording) -> dict[str, tuple[type, int]]:
    return {s.name: (s.type, len(s)) for s in recording}


def zipped(folder: Path, path: Path, top: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, top + file.relative_to(folder).as_posix())
    return path


@pytest.mark.parametrize("format", SAMPLES)
def test_every_format_reads_the_same_with_a_folder_of_truth_beside_its_files(
    format: str, tmp_path: Path
) -> None:
    SAMPLES[format](tmp_path / "day")
    alone = transect.open(tmp_path / "day")
    write_truth(tmp_path / "day" / "truth")
    said = formats.recognise(tmp_path / "day")[0]
    with_truth = transect.open(tmp_path / "day")
    assert said[0] == alone.format == with_truth.format == format
    assert facts(with_truth) == {
        **facts(alone),
        "truth/trajectory": (Pose, 3),
        "truth/slip": (Record, 3),
        "truth/dem": (GridMap, 1),
    }
    assert with_truth.losses == alone.losses
    assert with_truth.notes == alone.notes
    assert {s.role for s in with_truth if s.name in NAMES} == {"truth"}


@pytest.mark.parametrize("format", SAMPLES)
def test_the_truth_of_a_recording_is_the_trajectory_on_the_recordings_clock(
    format: str, tmp_path: Path
) -> None:
    SAMPLES[format](tmp_path / "day")
    write_truth(tmp_path / "day" / "truth")
    recording = transect.open(tmp_path / "day")
    truth = recording.truth
    assert truth is not None
    assert truth.name == "truth/trajectory"
    assert (truth.frame, truth.child) == ("world", "body")
    assert truth.clock == ("sclk" if format == "ida" else "utc")
    assert truth.t_ns[1] == 1224199788_110_000_000
    np.testing.assert_array_equal(truth.array("x", "y", "z")[1], [1.5, 2.0, 3.0])
    np.testing.assert_array_equal(truth.array("qx", "qy", "qz", "qw")[1], [0.0, 0.0, 0.6, 0.8])
    np.testing.assert_array_equal(recording["truth/slip"]["slip"], [0.1, 0.2, 0.3])


@pytest.mark.parametrize("top", ["", "etna/"])
def test_a_zip_has_its_truth_inside_too(top: str, tmp_path: Path) -> None:
    ameds_sample.write_sample(tmp_path / "day")
    write_truth(tmp_path / "day" / "truth")
    recording = transect.open(zipped(tmp_path / "day", tmp_path / "day.zip", top))
    assert recording.format == "ameds"
    assert set(NAMES) <= set(facts(recording))
    grid = recording["truth/dem"][0].value
    np.testing.assert_array_equal(grid.layers["elevation"], np.arange(6.0).reshape(2, 3))


def test_truth_is_read_when_asked_for_and_then_counts_as_read(tmp_path: Path) -> None:
    sdi_sample.write_dataset(tmp_path / "day")
    write_truth(tmp_path / "day" / "truth")
    recording = transect.open(tmp_path / "day")
    before = {file.path for file in recording.provenance.sources}
    assert len(recording["truth/trajectory"]) == 3
    assert len(recording["truth/slip"]) == 3
    assert recording["truth/dem"][0].value.layers
    after = {file.path for file in recording.provenance.sources}
    assert after - before == {"truth/trajectory.tum", "truth/slip.parquet", "truth/dem.tif"}


def test_the_header_of_the_trajectory_may_name_the_body_and_the_world(tmp_path: Path) -> None:
    sdi_sample.write_dataset(tmp_path / "day")
    write_truth(tmp_path / "day" / "truth")
    file = tmp_path / "day" / "truth" / "trajectory.tum"
    file.write_text("# frame SimulatedWorld, child Body\n" + file.read_text())
    day = transect.open(tmp_path / "day")
    assert (day["truth/trajectory"].frame, day["truth/trajectory"].child) == ("SimulatedWorld", "Body")
    assert day["truth/dem"].frame == "SimulatedWorld"


@pytest.mark.parametrize("format", SAMPLES)
def test_a_recording_written_again_keeps_its_truth_byte_for_byte(format: str, tmp_path: Path) -> None:
    SAMPLES[format](tmp_path / "day")
    truth = write_truth(tmp_path / "day" / "truth")
    said = formats.write(transect.open(tmp_path / "day"), tmp_path / "again", format)
    assert not [sentence for sentence in said if "truth/" in sentence]
    for file in (f for f in truth.rglob("*") if f.is_file()):
        assert (tmp_path / "again" / "truth" / file.relative_to(truth)).read_bytes() == file.read_bytes()
    assert set(NAMES) <= set(facts(transect.open(tmp_path / "again")))


def test_a_part_of_a_recording_keeps_that_part_of_its_truth(tmp_path: Path) -> None:
    sdi_sample.write_dataset(tmp_path / "day")
    write_truth(tmp_path / "day" / "truth")
    part = transect.open(tmp_path / "day").slice("1224199788.106", "1224199788.115")
    formats.write(part, tmp_path / "part", "sdi")
    again = transect.open(tmp_path / "part")
    assert again["truth/trajectory"].t_ns.tolist() == [1224199788_110_000_000]
    assert again["truth/slip"]["slip"].tolist() == [0.2]
    assert len(again["truth/dem"]) == 1


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_recording_exported_as_tables_has_its_truth_in_the_folder_as_well(
    format: str, tmp_path: Path
) -> None:
    sdi_sample.write_dataset(tmp_path / "day")
    write_truth(tmp_path / "day" / "truth")
    formats.write(transect.open(tmp_path / "day"), tmp_path / "tables", format)
    again = transect.open(tmp_path / "tables")
    assert set(NAMES) <= set(facts(again))
    assert again.truth is not None
    assert again.truth.name == "truth/trajectory"


def test_a_single_file_says_that_it_has_no_place_for_truth(tmp_path: Path) -> None:
    SAMPLES["carmen"](tmp_path / "day")
    write_truth(tmp_path / "day" / "truth")
    recording = transect.open(tmp_path / "day")
    said = formats.write(recording, tmp_path / "log.clf", "carmen")
    assert any("truth/trajectory" in sentence and "single file" in sentence for sentence in said)


def test_truth_alone_can_be_exported(tmp_path: Path) -> None:
    sdi_sample.write_dataset(tmp_path / "day")
    write_truth(tmp_path / "day" / "truth")
    truth = transect.open(tmp_path / "day").select("truth/trajectory")
    assert formats.write(truth, tmp_path / "truth.tum", "tum") == ()
    assert len(transect.open(tmp_path / "truth.tum").streams[0]) == 3


def test_a_damaged_table_is_a_loss_and_the_rest_is_kept(tmp_path: Path) -> None:
    sdi_sample.write_dataset(tmp_path / "day")
    truth = write_truth(tmp_path / "day" / "truth")
    (truth / "slip.parquet").write_bytes(b"PAR1 no more")
    with (truth / "trajectory.tum").open("a") as file:
        file.write("1224199788.130 x\n")
    recording = transect.open(tmp_path / "day")
    assert [loss.file for loss in recording["truth/slip"].losses] == ["truth/slip.parquet"]
    assert [(loss.file, loss.line) for loss in recording["truth/trajectory"].losses] == [
        ("truth/trajectory.tum", 5)
    ]
    assert len(recording["truth/trajectory"]) == 3


def test_a_folder_that_is_only_called_truth_is_left_to_the_reader(tmp_path: Path) -> None:
    rosario(tmp_path / "day")
    shutil.copytree(tmp_path / "day", tmp_path / "images" / "truth")
    recording = transect.open(tmp_path / "images")
    assert recording.format == "rosario"
    assert not [s for s in recording if s.name.startswith("truth/")]


def test_a_description_that_names_files_in_truth_keeps_them(tmp_path: Path) -> None:
    write_truth(tmp_path / "day" / "truth")
    (tmp_path / "day" / "recording.yaml").write_text(
        "name: day\nstreams:\n"
        "  - {name: Slip, file: truth/slip.parquet, time: {column: t_ns, unit: ns}, role: truth}\n"
    )
    recording = transect.open(tmp_path / "day")
    assert facts(recording) == {"Slip": (Record, 3)}


def test_several_paths_with_truth_are_joined_with_it(tmp_path: Path) -> None:
    for name, seconds in (("one", 1224199788), ("two", 1224199999)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "run.tum").write_text(TUM.format(seconds))
        write_truth(folder / "truth", seconds)
    joined = transect.open(tmp_path / "one", tmp_path / "two")
    assert joined.truth is not None
    assert joined.truth.name == "truth/trajectory"
    assert len(joined.truth) == 6
