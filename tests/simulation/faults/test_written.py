"""Recordings with faults on disk: they open, differ where the labels say, and have all their truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.ameds import sample as ameds_sample
from tests.datasets.insight import sample as ida_sample
from tests.datasets.marulan import sample as sdi_sample
from tests.datasets.rosario import sample as rosario_sample
from tests.formats import bag_sample
from tests.formats.corpus import WRITERS
from tests.formats.test_truth import write_truth
from tests.simulation.faults.scene import labelled_rows, scene, touched_rows

import transect
from transect import formats
from transect.errors import TransectError, UsageError
from transect.recording import Recording, arrow
from transect.simulation.faults import FAULTS, LABELS
from transect.simulation.faults.written import write_injected

CARMEN = "".join(
    f"ODOM {0.1 * i} 0.0 0.0 0.5 0.0 0.0 {976052857 + i}.0 host {i}.0\n"
    f"FLASER 180 {' '.join(['5.0'] * 180)} 0 0 0 0 0 0 {976052857 + i}.5 host {i}.5\n"
    for i in range(20)
)
CHOSEN = (
    "fog",
    "haze",
    "stuck",
    "noise",
    "bias_step",
    "extrinsic_bump",
    "wheel_slip",
    "gnss_float",
    "latency",
)
"""A fault of each way to change a stream that leaves all samples there."""


def carmen(folder: Path) -> None:
    folder.mkdir()
    (folder / "lab.clf").write_text(CARMEN)


def rosario(folder: Path) -> None:
    folder.mkdir()
    rosario_sample.write_scripts_layout(folder)


def bag(folder: Path) -> None:
    folder.mkdir()
    bag_sample.write(folder, "ros1")


SAMPLES: dict[str, Callable[[Path], object]] = {
    "ameds": ameds_sample.write_sample,
    "sdi": WRITERS["sdi"],  # with small images
    "ida": ida_sample.write_sample,
    "rosario": rosario,
    "carmen": carmen,
    "rosbag": bag,
}


def files_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_written_fault_opens_with_its_labels_and_the_truth_that_was_there(tmp_path: Path) -> None:
    sdi_sample.write_dataset(tmp_path / "day")
    truth = write_truth(tmp_path / "day" / "truth")
    recording = transect.open(tmp_path / "day")
    written = write_injected(recording, tmp_path / "dusty", "noise", 1.0, 3, streams=("LaserPort",))
    again = transect.open(tmp_path / "dusty")
    assert again.format == "sdi"
    assert again[LABELS].table.select(written.labels.column_names).equals(written.labels)
    assert again[LABELS].role == "truth"
    assert {
        name: data
        for name, data in files_of(tmp_path / "dusty" / "truth").items()
        if name != "faults.parquet"
    } == files_of(truth)
    assert touched_rows(recording["LaserPort"], again["LaserPort"]) == labelled_rows(
        written.labels, "LaserPort"
    )
    assert again.truth is not None
    assert again.truth.name == "truth/trajectory"


@pytest.mark.parametrize("format", SAMPLES)
def test_severity_0_writes_the_same_bytes_as_no_fault(format: str, tmp_path: Path) -> None:
    SAMPLES[format](tmp_path / "day")
    recording = transect.open(tmp_path / "day")
    formats.write_folder(recording, tmp_path / "clean" / "day", format)
    write_injected(recording, tmp_path / "faulty" / "day", "dropout", 0.0)
    assert files_of(tmp_path / "faulty") == files_of(tmp_path / "clean")


def applicable(recording: Recording) -> list[str]:
    """Return the faults that can happen to a recording."""
    types = {s.type for s in recording if s.role != "truth" and not s.meta.get("timeless")}
    return [name for name in CHOSEN if any(issubclass(t, FAULTS[name].types) for t in types)]


@pytest.mark.parametrize("format", SAMPLES)
def test_every_fault_survives_the_format_of_the_recording(format: str, tmp_path: Path) -> None:
    """Streams that the format carries differ on disk in the labelled samples, and in no others."""
    SAMPLES[format](tmp_path / "day")
    recording = transect.open(tmp_path / "day")
    formats.write_folder(recording, tmp_path / "clean", format)
    base = transect.open(tmp_path / "clean")
    span = base.span
    assert span is not None
    for fault in applicable(recording):
        written = write_injected(base, tmp_path / fault, fault, 0.7, 2, start=span[0], end=span[1] + 1)
        again = transect.open(tmp_path / fault)
        assert again.format == format
        if written.labels.num_rows:
            assert again[LABELS].table.equals(written.labels)
        for stream in base:
            if stream.name in again and stream.loader is None and fault != "latency":
                found = touched_rows(stream, again[stream.name])
                assert found == labelled_rows(written.labels, stream.name), (fault, stream.name)


def test_a_recording_that_was_one_file_is_one_file_in_its_new_folder(tmp_path: Path) -> None:
    (tmp_path / "lab.clf").write_text(CARMEN)
    recording = transect.open(tmp_path / "lab.clf")
    written = write_injected(recording, tmp_path / "slip", "wheel_slip", 1.0)
    assert sorted(files_of(written.path)) == ["lab.clf", "truth/faults.parquet"]
    assert transect.open(written.path).format == "carmen"


def test_pictures_that_are_not_touched_are_copied_byte_for_byte(tmp_path: Path) -> None:
    ameds_sample.write_sample(tmp_path / "day")
    recording = transect.open(tmp_path / "day")
    first = recording["MainCam"].t_ns.min()
    written = write_injected(
        recording, tmp_path / "hazy", "haze", 1.0, streams=("MainCam",), start=int(first), end=int(first) + 1
    )
    assert written.labels.num_rows == 1
    old, new = files_of(tmp_path / "day"), files_of(tmp_path / "hazy")
    pictures = sorted(name for name in old if name.startswith("MainCam_"))
    assert len(pictures) > 1
    assert [old[name] == new.get(name) for name in pictures] == [False] + [True] * (len(pictures) - 1)


def test_the_simulated_scene_is_written_with_the_fault_in_its_pictures(tmp_path: Path) -> None:
    recording = scene("VideoVisual", "VideoIR", "LaserHorizontal")
    write_injected(recording, tmp_path / "smoke", "smoke", 1.0, 1)
    again = transect.open(tmp_path / "smoke")
    labels = again[LABELS]
    own = [i for i, n in zip(labels["index"].tolist(), labels["stream"], strict=True) if n == "VideoVisual"]
    clear = {i: recording["VideoVisual"][i].value.data for i in range(len(recording["VideoVisual"]))}
    other = [i for i in clear if not np.array_equal(clear[i], again["VideoVisual"][i].value.data)]
    assert other == own


@pytest.mark.parametrize("fault", ["bit_flip", "truncation"])
def test_damage_is_in_the_named_file_at_the_labelled_bytes(fault: str, tmp_path: Path) -> None:
    sdi_sample.write_dataset(tmp_path / "day")
    recording = transect.open(tmp_path / "day")
    write_injected(recording, tmp_path / "clean", "dropout", 0.0)
    name = "LaserPort/" + next(p.name for p in (tmp_path / "clean" / "LaserPort").iterdir())
    written = write_injected(recording, tmp_path / "bad", fault, 1.0, streams=("LaserPort/*",))
    clean, bad = files_of(tmp_path / "clean"), files_of(tmp_path / "bad")
    assert {n for n in clean if clean[n] != bad[n]} == {name}
    assert set(arrow.texts(written.labels, "stream")) == {name}
    index = arrow.numbers(written.labels, "index").tolist()
    if fault == "truncation":
        assert index == [len(bad[name])]
        assert bad[name] == clean[name][: len(bad[name])]
        assert len(bad[name]) == pytest.approx(len(clean[name]) / 2, abs=1)
    else:
        assert index == [i for i, (a, b) in enumerate(zip(clean[name], bad[name], strict=True)) if a != b]
        assert all((clean[name][i] ^ bad[name][i]).bit_count() == 1 for i in index)


@pytest.mark.parametrize("fault", ["bit_flip", "truncation"])
def test_more_damage_is_the_same_and_more(fault: str) -> None:
    damage = FAULTS[fault].damage
    assert damage is not None
    content = bytes(range(256)) * 400
    less, more = (damage(content, s, np.random.default_rng(1)) for s in (0.3, 0.9))
    if fault == "bit_flip":
        assert set(less[1]) < set(more[1])
    else:
        assert len(more[0]) < len(less[0]) < len(content)


def test_a_damaged_recording_opens_and_its_labels_keep_their_place_in_time(tmp_path: Path) -> None:
    sdi_sample.write_dataset(tmp_path / "day")
    recording = transect.open(tmp_path / "day")
    write_injected(recording, tmp_path / "bad", "truncation", 0.5, 1, streams=("LaserPort/*",))
    again = transect.open(tmp_path / "bad")
    assert len(again["LaserPort"]) < len(recording["LaserPort"])
    assert again.losses
    assert again.span is not None
    assert recording.span is not None
    assert again.span[0] == recording.span[0]


def test_the_seed_chooses_a_file_where_none_is_named(tmp_path: Path) -> None:
    sdi_sample.write_dataset(tmp_path / "day")
    recording = transect.open(tmp_path / "day")
    chosen = set()
    for seed in range(6):
        written = write_injected(recording, tmp_path / str(seed), "bit_flip", 1.0, seed)
        chosen |= set(arrow.texts(written.labels, "stream"))
    assert len(chosen) > 1
    with pytest.raises(UsageError, match="no file matches"):
        write_injected(recording, tmp_path / "none", "bit_flip", 1.0, streams=("Sonar/*",))
    assert not (tmp_path / "none").exists()


def test_a_target_that_is_there_and_a_format_that_cannot_write_are_refused(tmp_path: Path) -> None:
    recording = scene("Imu", "LaserHorizontal")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write_injected(recording, tmp_path / "full", "noise", 0.5)
    with pytest.raises(TransectError, match="cannot be written"):
        write_injected(recording, tmp_path / "new", "noise", 0.5, format="described")
    assert [p.name for p in tmp_path.iterdir()] == ["full"]
