"""Bundles of recordings and results: every type of stream, and an error for each mistake in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from tests.commands import transect as run

import transect
from transect import types
from transect.archive.assembly.bundles import Material, make_bundle
from transect.archive.assembly.config import parse_config
from transect.archive.assembly.sources import template_text
from transect.archive.builder import build_bundle
from transect.archive.context import ContextRegistry
from transect.errors import ParseError
from transect.recording import FrameTree, Recording, Stream, arrow
from transect.recording.arrow import PAYLOAD
from transect.recording.stream import stream_of_values
from transect.types import (
    CameraModel,
    CorrespondenceMaps2D,
    CorrespondenceMaps3D,
    Correspondences2D,
    Correspondences3D,
    DepthMap,
    Edges,
    Features2D,
    Features3D,
    GridMap,
    Image,
    Octree,
    PlaceMap,
    PointCloud,
    StereoPair,
    Trajectory,
    Transform,
    Verdict,
)

ROOT = Path(__file__).resolve().parents[2]
START_NS = 1_650_000_000_123_456_789
T_NS = START_NS + np.arange(3, dtype=np.int64) * 100_000_007
CAMERA = CameraModel("cam", 4, 3, np.diag([300.0, 300.0, 1.0]), "radtan", np.array([0.1, -0.2]), frame="cam")
_PAIR2 = Correspondences2D(np.zeros((2, 2), "f4"), np.ones((2, 2), "f4"))
_PAIR3 = Correspondences3D(np.zeros((2, 3)), np.ones((2, 3)))
_CLOUD = {"intensity": np.arange(3, dtype="f4"), "rgb": np.eye(3, dtype="u1"), "t_offset_ns": np.arange(3)}
PAYLOADS: dict[str, Any] = {
    "Cam/Rgb": Image(np.arange(36, dtype="u1").reshape(3, 4, 3), "rgb", camera=CAMERA),
    "Cam/Bgr": Image(np.arange(36, dtype="u1").reshape(3, 4, 3), "bgr"),
    "Cam/Thermal": Image(np.array([[1.5, np.nan], [3.0, 4.0]], "f4"), "thermal"),
    "Depth": DepthMap(np.array([[np.nan, 2.0]], "f4")),
    "Lidar": PointCloud(np.array([[1.0, 2, 3], [np.nan, np.nan, np.nan], [4, 5, 6]], "f4"), _CLOUD),
    "Map": GridMap({"elevation": np.eye(2), "slope": np.ones((2, 2))}, (1.0, 0, 5, 0, -1, 7)),
    "Pair": StereoPair(Image(np.zeros((2, 2), "u1")), Image(np.ones((2, 2), "u1"))),
    "Corners": Features2D(np.ones((2, 2), "f4"), descriptors=np.zeros((2, 4), "u1")),
    "Points": Features3D(np.ones((2, 3))),
    "Matches": _PAIR2,
    "Matches3": _PAIR3,
    "Maps2": CorrespondenceMaps2D((_PAIR2,), ((0, 1),)),
    "Maps3": CorrespondenceMaps3D((_PAIR3,), ((0, 1),)),
    "Tree": Octree(np.zeros(3), 8.0, 2, np.zeros((1, 3), np.int64), np.ones(1, np.int64)),
    "Path": Trajectory(T_NS, np.zeros((3, 3)), np.tile([0.0, 0, 0, 1], (3, 1))),
    "Mounting": Transform("body", "cam", np.eye(4)),
    "Camera": CAMERA,
    "Places": PlaceMap(
        "LaserSlam",
        T_NS[:2],
        np.tile(np.eye(4), (2, 1, 1)),
        np.zeros((2, 6, 6)),
        np.zeros(2, np.int64),
        Edges(np.array([0]), np.array([1]), np.eye(4)[None], np.eye(6)[None], ("odometry",)),
        ({"points": np.ones((2, 2))}, {"points": np.zeros((1, 2))}),
    ),
    "Judged": Verdict(
        "Imu", "Imu", START_NS, START_NS + 1, "T01", state="BAD", evidence={"rate": 3.0}, peers=("Gps",)
    ),
}
COLUMNS: dict[str, tuple[type, dict[str, Any]]] = {
    "Imu": (types.Imu, {"acc_x": np.array([np.nan, 0.1, 1e-7]), "gyro_x": np.array([1, 2, 3], "f4")}),
    "Arm": (types.JointState, {"position": np.arange(6.0).reshape(3, 2)}),
    "Scan": (types.LaserScan, {"ranges": [np.array([1.0, 2]), np.array([3.0]), np.array([4.0, 5, 6])]}),
    "Battery": (
        types.Record,
        {"volts": np.array([24, 23, 22]), "on": np.array([True, False, True]), "état": ["ü", ",", ""]},
    ),
    **{
        kind.__name__: (kind, {name: np.linspace(0, 1, 3) for name in kind.units()})
        for kind in (types.Pose, types.NavFix, types.Odometry, types.Twist, types.RigidBodyState)
    },
    **{
        kind.__name__: (kind, {name: np.linspace(0, 1, 3) for name in kind.units()})
        for kind in (types.WheelState, types.Wrench, types.RadarRange, types.RadarSpectrum)
    },
}


def _payload_stream(name: str, value: Any) -> Stream:
    table = arrow.table(T_NS, {PAYLOAD: arrow.strings([f"{name}.bin"] * 3)})
    frame = "cam" if name.startswith("Cam") else ""
    return Stream(name, type(value), table, loader=lambda row: value, frame=frame)


@pytest.fixture(scope="module")
def recording() -> Recording:
    frames = FrameTree()
    frames.add_static("body", "cam", np.array([[0.0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]]))
    columns = [stream_of_values(name, T_NS, values, type=kind) for name, (kind, values) in COLUMNS.items()]
    device = stream_of_values("Device", T_NS, {"x": np.arange(3.0)}, clock="device")
    empty = stream_of_values("Empty", T_NS[:0], {"x": np.zeros(0)})
    payloads = [_payload_stream(name, value) for name, value in PAYLOADS.items()]
    return Recording(
        "All types", (*columns, device, empty, *payloads), frames, {"cam": CAMERA}, format="made up"
    )


@pytest.fixture(scope="module")
def built(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("types") / "b"
    config = parse_config(template_text(recording, "nowhere"), Path("archive.yaml"))
    bundle, notes = make_bundle(config, Material(recording), ContextRegistry())
    return build_bundle(bundle, folder), notes, transect.open(folder)


def test_every_type_of_sample_is_tried() -> None:
    tried = {type(value) for value in PAYLOADS.values()} | {kind for kind, _ in COLUMNS.values()}
    names = [name for name in types.__all__ if name[0].isupper() and not name.isupper()]
    every = {getattr(types, name) for name in names} - {types.Provenance, types.SourceFile, types.State}
    every -= {types.Anchor, types.Edges}  # parts of a map of places
    assert every <= tried | {types.DEM}


def test_every_stream_with_samples_is_archived(built: Any, recording: Recording) -> None:
    made, notes, _ = built
    assert made.losses == ()
    assert notes == ["Empty has no samples, and so no product"]
    names = {lidvid.lid.name for lidvid in made.changes}
    for stream in recording.streams:
        stem = stream.name.lower().replace("/", "_")
        assert (f"{stem}_index" in names or stem in names) == bool(len(stream)), stream.name


@pytest.mark.parametrize("name", [*COLUMNS, "Device"])
def test_numbers_and_times_of_columns_are_read_back_exactly(
    built: Any, recording: Recording, name: str
) -> None:
    _, _, opened = built
    before, after = recording[name], opened[name.lower()]
    assert np.array_equal(after.t_ns, T_NS)
    assert after.clock == ("index" if name == "Device" else "utc")
    for column in before.columns:
        values = before.table.column(column).to_pylist()
        if isinstance(values[0], list):
            read = np.column_stack(
                [after[f"{column}_{number + 1}"] for number in range(max(map(len, values)))]
            )
            for row, numbers in enumerate(values):
                assert read[row, : len(numbers)].tolist() == numbers
                assert np.isnan(read[row, len(numbers) :]).all()
        elif isinstance(values[0], str):
            assert after[column] == [each or None for each in values]
        else:
            narrow = before.table.schema.field(column).type.bit_width == 32
            read = np.asarray(after[column], np.float32 if narrow else np.float64)
            assert np.array_equal(read, np.asarray(values, read.dtype), equal_nan=True)
        written = f"{column}_1" if isinstance(values[0], list) else column
        assert after.units[written] == before.units[column]


def test_payloads_are_read_back_exactly(built: Any) -> None:
    _, _, opened = built
    assert np.array_equal(opened["cam_rgb_000002"][0].value.data, PAYLOADS["Cam/Rgb"].data)
    assert np.array_equal(opened["cam_bgr_000000"][0].value.data, PAYLOADS["Cam/Bgr"].data[..., ::-1])
    thermal = opened["cam_thermal_000001"][0].value.data
    assert np.array_equal(thermal, PAYLOADS["Cam/Thermal"].data, equal_nan=True)
    cloud = opened["lidar_000000"]
    assert np.array_equal(cloud["x"], PAYLOADS["Lidar"].points[:, 0], equal_nan=True)
    assert [cloud[f"rgb_{number}"].tolist() for number in (1, 2, 3)] == np.eye(3).tolist()
    assert opened["lidar_index"]["file_name"] == [f"lidar_{number:06d}.dat" for number in range(3)]
    assert np.array_equal(opened["lidar_index"].t_ns, T_NS)
    assert np.array_equal(opened["map_000000/image_2"][0].value.data, np.ones((2, 2)))


def test_labels_say_units_meanings_lineage_frames_and_arms(built: Any) -> None:
    made, _, _ = built
    imu = (made.folder / "data_calibrated/imu.xml").read_text()
    assert "<unit>m/s2</unit>" in imu
    assert "Acceleration, acc_x: Specific force" in imu
    assert "<proc:description>read as made up<" in imu
    picture = (made.folder / "data_raw/cam_rgb/cam_rgb_000000.xml").read_text()
    assert "<disp:red_channel_band>1<" in picture
    assert '<geom:x_position unit="m">1.0<' in picture
    assert "<geom:qcos>0.70710678118654" in picture  # a quarter turn about z
    arm = (made.folder / "data_calibrated/arm.xml").read_text()
    assert '<geom:index_value_angle unit="rad">1.0<' in arm
    assert "<processing_level>Derived" not in imu


def test_an_archive_with_the_stand_in_is_marked_not_for_submission(built: Any) -> None:
    made, _, _ = built
    assert (made.folder / "readme.txt").read_text().startswith("NOT FOR SUBMISSION")
    assert "(not for submission)</title>" in (made.folder / "bundle_all_types.xml").read_text()


# Files that a person completes


def _text(**changes: str) -> str:
    text = template_text(None, results=["path.tum"])
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    return text


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("authority: stand-in", "authorty: stand-in"), "'authorty'; did you mean 'authority'"),
        (("authority: stand-in", "authority: nasa"), "'nasa' is no authority"),
        (('name: "path"', 'name: "My Path"'), "write my_path"),
        (("urn:nasa:pds:context:target:planet.earth", "urn:earth"), "no logical identifier"),
        (("type: Rover", "type: Roover"), "did you mean 'Rover'"),
        (('"1970-01-01T00:00:00Z"', "yesterday"), "no time"),
        (("documents: []", "documents: [{file: a b.pdf, title: A}]"), "no name for a file"),
        (("documents: []", "documents: [{file: a.docx, title: A}]"), "cannot be archived"),
        (('doi: ""', 'doi: "see below"'), "no DOI"),
        (("browse: 1", "browse: some"), "whole number"),
        (('created: "1970-01-01T00:00:00Z"', "created: 2024-13"), "no time"),
        (("keywords: [", 'vid: "one"\n  keywords: ['), "no version"),
        (("documents: []", "streams: {path: {every: 0}}"), "every is 0"),
        (("documents: []", "streams: {path: {columns: {x: {format: wide}}}}"), "no format of a field"),
    ],
)  # fmt: skip
def test_each_mistake_in_a_file_is_named_with_its_line(change: tuple[str, str], what: str) -> None:
    text = _text(**dict([change]))
    line = 1 + text[: text.index(change[1])].count("\n")
    with pytest.raises(ParseError) as error:
        parse_config(text, Path("mine.yaml"))
    assert what in f"{error.value.what}; {error.value.hint}"
    assert error.value.where == f"mine.yaml:{line}"


@pytest.mark.parametrize(
    ("before", "after", "what", "hint"),
    [
        ('"Imu":', '"Imuu":', "no stream 'Imuu'", "did you mean 'Imu'"),
        ('streams: ["Imu"]', "streams: [Gyro]", "no stream matches 'Gyro'", ""),
        ("    level: Calibrated", "    columns: {volt: {format: '%9.4f'}}", "has no column 'volt'", ""),
        ("documents: []", "documents: [{file: a.pdf, title: A}]", "a.pdf is not there", ""),
    ],
)
def test_what_is_not_in_the_recording_is_named_with_its_line(
    recording: Recording, before: str, after: str, what: str, hint: str
) -> None:
    text = template_text(recording, "nowhere").replace(before, after, 1)
    assert after in text
    line = 1 + text[: text.index(after)].count("\n")
    with pytest.raises(ParseError, match=what) as error:
        make_bundle(parse_config(text, Path("mine.yaml")), Material(recording), ContextRegistry())
    assert error.value.where.startswith("mine.yaml:")
    assert abs(int(error.value.where.rpartition(":")[2]) - line) <= 1
    assert hint in error.value.hint


@pytest.mark.parametrize("how", ["above", "absolute", "link"])
def test_a_document_from_outside_the_folder_of_the_file_is_not_published(
    recording: Recording, tmp_path: Path, how: str
) -> None:
    secret, folder = tmp_path / "secret.txt", tmp_path / "bundle"
    secret.write_text("secret\n")
    folder.mkdir()
    (folder / "link.txt").symlink_to(secret)
    named = {"above": "../secret.txt", "absolute": str(secret), "link": "link.txt"}[how]
    text = template_text(recording, "nowhere")
    text = text.replace("documents: []", f"documents: [{{file: {named}, title: A}}]", 1)
    with pytest.raises(ParseError, match="outside the folder of mine") as error:
        make_bundle(parse_config(text, folder / "mine.yaml"), Material(recording), ContextRegistry())
    assert error.value.hint.endswith(f"cp {secret} {folder}")
    (folder / "own.txt").write_text("mine\n")
    text = text.replace(named, "own.txt")
    make_bundle(parse_config(text, folder / "mine.yaml"), Material(recording), ContextRegistry())


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("drive") / "path.tum"
    path.write_text("".join(f"{1_650_000_000 + i} {i} 0 0 0 0 0 1\n" for i in range(4)))
    return path


def check_document(text: str) -> dict[str, Any]:
    """What `archive build --json` printed, if it is as docs/pds4.md has it."""
    page = (ROOT / "docs" / "pds4.md").read_text()
    schema = page.partition("`archive build --json`")[2].partition("```json schema\n")[2].partition("```")[0]
    said = json.loads(text)
    jsonschema.Draft202012Validator(json.loads(schema)).validate(said)
    return said


def test_a_file_is_described_completed_and_built(drive: Path) -> None:
    done = run("archive", "init", "path.tum", "-o", "archive.yaml", cwd=drive.parent)
    assert (done.returncode, done.stderr) == (0, "")
    described = drive.parent / "archive.yaml"
    described.write_text(described.read_text().replace("authority: stand-in", "authority: urn:esa:psa"))
    done = run("archive", "build", "archive.yaml", "-o", "bundle", "--json", cwd=drive.parent)
    said = check_document(done.stdout)
    assert said["bundle"] == "urn:esa:psa:path::1.0"
    assert "urn:esa:psa:path:data_derived:trajectory::1.0" in said["products"]
    assert set(said["products"].values()) == {"new"}
    assert not (drive.parent / "bundle/readme.txt").read_text().startswith("NOT FOR SUBMISSION")
    again = run("archive", "build", "archive.yaml", "-o", "bundle", cwd=drive.parent)
    assert "1 unchanged" in again.stdout
    third = run("archive", "build", "archive.yaml", "-o", "bundle", "--json", cwd=drive.parent)
    assert "none" in check_document(third.stdout)["products"].values()
    assert all(
        len(line) <= 80 for line in again.stdout.splitlines() if not line.startswith(("note", "wrote"))
    )


def test_init_does_not_overwrite_and_a_typo_is_helped(drive: Path) -> None:
    (drive.parent / "mine.yaml").write_text("years of work")
    done = run("archive", "init", drive, "-o", drive.parent / "mine.yaml")
    assert done.returncode == 2
    assert (drive.parent / "mine.yaml").read_text() == "years of work"
    bad = drive.parent / "bad.yaml"
    bad.write_text("recording: path.tum\nbundel: {name: x}\n")
    done = run("archive", "build", bad, "-o", drive.parent / "never")
    assert done.returncode == 1
    assert f"{bad}:2: the archive has an unknown key 'bundel'; did you mean 'bundle'?" in done.stderr
    assert not (drive.parent / "never").exists()


def test_a_payload_that_cannot_be_read_is_a_loss_and_the_rest_is_kept(
    recording: Recording, tmp_path: Path
) -> None:
    def load(row: Any) -> Image:
        if row["t_ns"] == T_NS[1]:
            raise ParseError("this image is damaged", where="x.png")
        return PAYLOADS["Cam/Rgb"]

    stream = _payload_stream("Cam/Rgb", PAYLOADS["Cam/Rgb"]).replace(loader=load)
    damaged = Recording("Damaged", (stream,))
    config = parse_config(template_text(damaged, "nowhere"), Path("archive.yaml"))
    bundle, _ = make_bundle(config, Material(damaged), ContextRegistry())
    made = build_bundle(bundle, tmp_path / "b")
    assert made.losses == ("urn:nasa:pds:damaged:data_raw:cam_rgb_000001: this image is damaged",)
    folder = tmp_path / "b/data_raw/cam_rgb"
    assert sorted(path.name for path in folder.glob("*.img")) == ["cam_rgb_000000.img", "cam_rgb_000002.img"]
    assert b"000001" not in (tmp_path / "b/data_raw/collection_data_raw_inventory.csv").read_bytes()


def test_names_out_of_logs_never_become_paths(tmp_path: Path) -> None:
    names = ["../../etc/passwd", "/abs", "a/../b", "con", ".hidden", "ünïcode", "x" * 300, "a b", "A B"]
    streams = tuple(stream_of_values(name, T_NS, {"x": np.arange(3.0)}) for name in names)
    hostile = Recording("../evil", streams)
    config = parse_config(template_text(hostile, "nowhere"), Path("archive.yaml"))
    bundle, _ = make_bundle(config, Material(hostile), ContextRegistry())
    build_bundle(bundle, tmp_path / "b")
    assert len(list((tmp_path / "b/data_calibrated").glob("*.csv"))) == len(names) + 1  # and the inventory
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "b.context.json", "b.md5"]


def test_a_device_clock_is_no_date_and_init_and_build_say_so(tmp_path: Path) -> None:
    (tmp_path / "path.tum").write_text("".join(f"{t}.5 {t} 0 0 0 0 0 1\n" for t in range(5)))
    made = run("archive", "init", tmp_path / "path.tum", "-o", tmp_path / "archive.yaml")
    assert made.returncode == 0
    assert "1970-01-01" in (tmp_path / "archive.yaml").read_text()
    assert "warning: no clock of the recording tells a date" in made.stderr
    built = run("archive", "build", tmp_path / "archive.yaml", "-o", tmp_path / "bundle")
    assert "no clock of the recording tells a date" in built.stdout + built.stderr
    dated = (tmp_path / "archive.yaml").read_text().replace("1970-01-01", "2024-05-01")
    (tmp_path / "archive.yaml").write_text(dated)
    again = run("archive", "build", tmp_path / "archive.yaml", "-o", tmp_path / "other")
    assert "tells a date" not in again.stdout + again.stderr
