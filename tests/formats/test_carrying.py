"""Written and opened again: what each format carries exactly, in part or not, and that it says so."""

from pathlib import Path

import pytest
from tests.datasets.ameds import sample as ameds_sample
from tests.datasets.insight import sample as ida_sample
from tests.datasets.marulan import sample as sdi_sample
from tests.datasets.rosario import sample as rosario_sample
from tests.formats import carrying, every_type
from tests.formats.comparing import stream_differences

import transect
from transect.recording import Recording

DOCS_DIR = Path(__file__).parents[2] / "docs" / "formats.md"
CONTAINERS = ("rosbag", "rosbag2", "mcap", "foxglove", "msgpack", "csv", "parquet")


@pytest.mark.parametrize("format", carrying.SUFFIXES)
def test_what_is_not_carried_exactly_is_said(format: str):
    found = carrying.carried(format)
    silent = [
        kind for kind in every_type.streams() if found[kind][0] != carrying.EXACTLY and not found[kind][1]
    ]
    assert silent == []


def test_the_table_in_the_docs_is_what_writing_and_opening_gives():
    assert carrying.table() in DOCS_DIR.read_text()


@pytest.mark.parametrize("kind", every_type.streams())
def test_foxglove_carries_everything_under_its_names(kind: str, tmp_path: Path):
    stream = every_type.streams()[kind]
    cameras = {"cam": every_type.CAMERA} if stream.camera else {}
    back, said = carrying.carry(Recording("one", (stream,), cameras=cameras), "foxglove", tmp_path)
    assert said == ()
    assert back is not None
    assert stream_differences(stream, back) == []


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    """Return a small recording of each robot, as its data set lies on the disk."""
    writers = {
        "ameds": ameds_sample.write_sample,
        "rosario": rosario_sample.write_scripts_layout,
        "sdi": sdi_sample.write_dataset,
        "ida": ida_sample.write_sample,
    }
    found: dict[str, Recording] = {}
    for name, write in writers.items():
        folder = tmp_path_factory.mktemp(name)
        write(folder)
        found[name] = transect.open(folder, format=name)
    return found


@pytest.mark.parametrize("format", CONTAINERS)
@pytest.mark.parametrize("robot", ["ameds", "rosario", "sdi", "ida"])
def test_a_robots_recording_is_carried_exactly_or_its_streams_are_named(
    recordings: dict[str, Recording], robot: str, format: str, tmp_path: Path
):
    recording = recordings[robot]
    back, said = carrying.carry(recording.replace(name=robot), format, tmp_path)
    assert back is not None
    lost = {s.name: stream_differences(s, back, names=False) for s in recording}
    named = {name for name in lost if any(name in sentence for sentence in said)}
    assert {name: found for name, found in lost.items() if found and name not in named} == {}
