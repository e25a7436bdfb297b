"""Archives of results: runs, verdicts, files and stores, what made them, and documents beside them."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from tests.cli import run_sample
from tests.commands import transect

from transect import formats
from transect.archive.assembly.results import results_of, store_results
from transect.errors import ParseError
from transect.recording import Recording, Stream, arrow
from transect.types import Pose


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a recording, a run, verdicts, a store with the run, and a trajectory."""
    folder = run_sample.write_project(tmp_path_factory.mktemp("made"))
    day = next(path.parent for path in folder.rglob("recording.yaml"))
    day.rename(folder / "recorded")
    for words in (
        ("run", folder / "track.yaml", folder / "recorded", "-o", folder / "fused"),
        ("check", folder / "recorded", "-o", folder / "judged"),
        ("products", "keep", folder / "kept.gpkg", folder / "fused"),
    ):
        done = transect(*words, cwd=folder)
        assert done.returncode in (0, 4), (words, done.stderr)
    t_ns = run_sample.START_NS + np.arange(20, dtype=np.int64) * 50_000_000
    track = Stream("Walk", Pose, arrow.table(t_ns, {axis: np.arange(20.0) for axis in "xyz"}))
    formats.write(Recording("walk", (track,)), folder / "walk.tum", "tum")
    return folder


def labels_of(bundle: Path) -> dict[str, str]:
    return {path.stem: path.read_text("utf-8") for path in bundle.rglob("*.xml")}


def build(folder: Path, out: Path, *parts: str) -> dict[str, str]:
    """Describe, build and validate an archive of some parts; return its labels."""
    described = transect("archive", "init", *(folder / part for part in parts), "-o", out / "a.yaml")
    assert described.returncode == 0, described.stderr
    built = transect("archive", "build", out / "a.yaml", "-o", out / "bundle")
    assert built.returncode == 0, built.stderr
    own = out / "bundle" / "context.json"
    added = ("--add-context", own) if own.is_file() else ()
    judged = transect("archive", "validate", out / "bundle", "--rule", "bundle", *added)
    assert judged.returncode == 0, judged.stdout
    return labels_of(out / "bundle")


def test_a_run_is_archived_with_the_compound_and_the_streams_that_it_was_made_of(
    made: Path, tmp_path: Path
) -> None:
    labels = build(made, tmp_path, "recorded", "fused", "judged")
    pose = next(text for name, text in labels.items() if "fused" in name)
    assert ":compound_1" in pose
    assert ":imu" in pose  # made of the stream that is in the same bundle
    compound = (next((tmp_path / "bundle").rglob("compound_1.txt"))).read_text("utf-8")
    assert yaml.safe_load(compound)["name"] == "Track2D"
    assert any("verdicts" in name for name in labels)


def test_a_run_alone_names_the_files_that_it_was_made_of(made: Path, tmp_path: Path) -> None:
    labels = build(made, tmp_path, "fused")
    pose = next(text for name, text in labels.items() if "pose" in name.lower())
    assert "sha256" in pose


def test_a_store_gives_the_same_results_as_the_run_that_is_in_it(made: Path, tmp_path: Path) -> None:
    kept = {
        each.stream.name.rpartition("/")[2]: each for each in store_results(str(made / "kept.gpkg"), tmp_path)
    }
    direct = {each.stream.name.rpartition("/")[2]: each for each in results_of(made / "fused")}
    assert set(kept) == set(direct)
    for name, result in direct.items():
        assert kept[name].times_ns == result.times_ns
        assert kept[name].inputs == result.inputs
        assert kept[name].stream.table.num_rows == result.stream.table.num_rows
    labels = build(made, tmp_path / "whole", "kept.gpkg") if (tmp_path / "whole").mkdir() is None else {}
    assert any("pose" in name.lower() for name in labels)


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Yield a socket that listens, and waits for nobody."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "http"])
def test_a_file_cannot_make_us_connect_to_a_server(
    made: Path, tmp_path: Path, server: socket.socket, scheme: str
) -> None:
    transect("archive", "init", made / "kept.gpkg", "-o", tmp_path / "a.yaml")
    said = yaml.safe_load((tmp_path / "a.yaml").read_text())
    said["products"] = f"{scheme}://me@127.0.0.1:{server.getsockname()[1]}/mission?connect_timeout=2"
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(said))
    refused = transect("archive", "build", tmp_path / "b.yaml", "-o", tmp_path / "bundle")
    assert refused.returncode == 1
    assert f"the file names a store on a server, {said['products']}" in refused.stderr
    assert f"--products {said['products']}" in refused.stderr
    with pytest.raises(BlockingIOError):
        server.accept()


def test_the_command_line_names_the_store_instead_of_the_file(made: Path, tmp_path: Path) -> None:
    transect("archive", "init", made / "kept.gpkg", "-o", tmp_path / "a.yaml")
    said = yaml.safe_load((tmp_path / "a.yaml").read_text())
    said["products"] = "postgresql://me@127.0.0.1:9/mission"
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(said))
    words = ("archive", "build", tmp_path / "b.yaml", "-o", tmp_path / "bundle", "--products")
    done = transect(*words, made / "kept.gpkg")
    assert done.returncode == 0, done.stderr
    assert any("pose" in name.lower() for name in labels_of(tmp_path / "bundle"))
    asked = transect(*words, "postgresql://me@127.0.0.1:9/mission?connect_timeout=2")
    assert asked.returncode == 1
    assert "127.0.0.1" in asked.stderr  # it was tried: nobody listens there


def test_a_trajectory_is_a_result_by_itself_and_an_empty_folder_has_no_results(
    made: Path, tmp_path: Path
) -> None:
    (walk,) = results_of(made / "walk.tum")
    assert (walk.stream.name, walk.stream.role, len(walk.stream)) == ("walk", "estimate", 20)
    assert [each.path for each in walk.sources] == ["walk.tum"]
    with pytest.raises(ParseError, match="holds no results"):
        list(results_of(tmp_path))


def test_documents_are_part_of_the_archive_and_one_that_is_missing_is_named(
    made: Path, tmp_path: Path
) -> None:
    transect("archive", "init", made / "recorded", "-o", tmp_path / "a.yaml")
    said = yaml.safe_load((tmp_path / "a.yaml").read_text())
    said["documents"] = [
        {"file": "notes.txt", "title": "Field notes", "authors": "Doe, Jane", "date": "2024-03-01"}
    ]
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(said))
    missing = transect("archive", "build", tmp_path / "b.yaml", "-o", tmp_path / "bundle")
    assert (missing.returncode, "notes.txt is not there" in missing.stderr) == (1, True)
    (tmp_path / "notes.txt").write_text("It rained.\r\n")
    built = transect("archive", "build", tmp_path / "b.yaml", "-o", tmp_path / "bundle", "--json")
    assert built.returncode == 0, built.stderr
    assert json.loads(built.stdout)
    assert "Field notes" in labels_of(tmp_path / "bundle")["notes"]
    assert (tmp_path / "bundle" / "document" / "notes.txt").read_text() == "It rained.\n"


def test_a_bundle_that_is_built_again_after_a_change_of_data_has_a_new_version(
    made: Path, tmp_path: Path
) -> None:
    first = build(made, tmp_path, "recorded")
    config = tmp_path / "a.yaml"
    again = transect("archive", "build", config, "-o", tmp_path / "bundle")
    assert again.returncode == 0
    assert labels_of(tmp_path / "bundle") == first  # nothing changed, so nothing is written again
    said = yaml.safe_load(config.read_text())
    said["bundle"]["title"] = "Another title"
    config.write_text(yaml.safe_dump(said))
    assert transect("archive", "build", config, "-o", tmp_path / "bundle").returncode == 0
    versions = {
        name: text.partition("<version_id>")[2].partition("<")[0]
        for name, text in labels_of(tmp_path / "bundle").items()
    }
    changed = [name for name, version in versions.items() if version != "1.0"]
    assert changed
    assert all(versions[name] == "1.1" for name in changed)
    for wanted, fits in (("1.1", False), ("1.0", False), ("3.0", True)):
        said["bundle"] |= {"vid": wanted, "title": f"Title for {wanted}"}
        config.write_text(yaml.safe_dump(said))
        done = transect("archive", "build", config, "-o", tmp_path / "bundle")
        assert done.returncode == (0 if fits else 2), (wanted, done.stderr)
        assert fits or "exists already" in done.stderr
