"""What each verb prints of one small recording: for people, as JSON, and when it is asked wrongly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from tests.cli import run_sample
from tests.commands import Done, transect

from transect.engine import Replay
from transect.view.viewer import Viewer


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a recording `day`, a run `fused` of it, and a store `kept.gpkg` with the run."""
    folder = run_sample.write_project(tmp_path_factory.mktemp("made"))
    for words in (
        ("run", folder / "track.yaml", folder / "day", "-o", folder / "fused"),
        ("products", "keep", folder / "kept.gpkg", folder / "fused"),
    ):
        done = transect(*words, cwd=folder)
        assert done.returncode == 0, (words, done.stderr)
    return folder


def document(done: Done) -> dict[str, object]:
    assert done.returncode in (0, 3, 4), done.stderr
    return json.loads(done.stdout)


# check


def test_check_lists_its_checks_with_their_limits() -> None:
    rows = json.loads(transect("check", "--json").stdout)
    listed = transect("check").stdout
    assert len(rows) > 20
    assert {"id", "name", "judges", "measures", "limits"} <= set(rows[0])
    assert all(row["id"] in listed for row in rows)


def test_check_finds_what_is_misprinted_in_the_catalogue_of_a_data_set() -> None:
    told = transect("check", "--catalogue", "sdi")
    found = document(transect("check", "--catalogue", "sdi", "--json"))
    assert told.returncode == 4
    assert found["catalogue"] == "sdi"
    assert f"{sum(each['column'] == 'utc' for each in found['misprints'])} times in UTC" in told.stdout


def test_check_says_everything_only_if_it_is_asked(made: Path) -> None:
    few, every = transect("check", made / "day"), transect("check", made / "day", "--all")
    assert "--all shows every problem" in few.stdout
    assert "--all shows every problem" not in every.stdout
    assert "not applicable: " in every.stdout
    assert len(every.stdout.splitlines()) > len(few.stdout.splitlines())
    sensors = {line.split()[0] for line in few.stdout.splitlines() if line.startswith(("imu", "wheels"))}
    assert sensors == {"imu", "wheels"}


def test_check_of_a_recording_without_sensors_says_so(tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text("word,other\na,b\nc,d\n")
    (tmp_path / "recording.yaml").write_text(
        "name: words\nstreams:\n- {name: words, type: Record, file: words.csv, delimiter: ',', header: 1}\n"
    )
    done = transect("check", tmp_path, "-o", tmp_path / "verdicts")
    assert "nothing to check" in done.stdout
    assert done.returncode == 0
    assert f"wrote {tmp_path / 'verdicts'}" in done.stderr
    assert {path.name for path in (tmp_path / "verdicts").iterdir()} == {
        "verdicts.parquet", "verdicts.csv", "verdict.schema.json"
    }  # fmt: skip


# view


@pytest.mark.parametrize("closing", [None, KeyboardInterrupt()])
def test_view_prints_where_a_recording_and_its_run_are_shown_until_the_page_is_closed(
    made: Path, closing: BaseException | None
) -> None:
    shown: list[Viewer] = []

    answer = Viewer.serve

    def serve(viewer: Viewer) -> None:
        shown.append(viewer)
        threading.Timer(0.05, viewer._server.shutdown).start()  # pyright: ignore[reportPrivateUsage]
        answer(viewer)
        if closing is not None:
            raise closing

    with (
        mock.patch.object(Viewer, "serve", serve),
        mock.patch("webbrowser.open") as opened,
    ):
        done = transect("view", made / "fused", "--no-browser")
        with_browser = transect("view", made / "day")
    assert (done.returncode, with_browser.returncode) == (0, 0)
    assert f"at {shown[0].url}" in done.stdout
    assert ("stopped" in done.stdout) == (closing is not None)
    opened.assert_called_once_with(shown[1].url)


ROBOT = """<robot name="box"><link name="base"><visual><geometry><box size="1 2 3"/></geometry></visual>
<visual><geometry><mesh filename="gone.stl"/></geometry></visual></link></robot>"""


def test_view_draws_the_robot_of_a_urdf_and_names_what_it_cannot_draw(made: Path, tmp_path: Path) -> None:
    (tmp_path / "box.urdf").write_text(ROBOT)
    answer = Viewer.serve

    def serve(viewer: Viewer) -> None:
        threading.Timer(0.05, viewer._server.shutdown).start()  # pyright: ignore[reportPrivateUsage]
        answer(viewer)

    with mock.patch.object(Viewer, "serve", serve):
        done = transect("view", made / "day", "--urdf", tmp_path / "box.urdf", "--no-browser", "--no-check")
    assert done.returncode == 0
    assert [line.startswith("warning: ") for line in done.stderr.splitlines()] == [True]
    assert "gone.stl" in done.stderr


@pytest.mark.parametrize("lacking", [[], ["LaserPort has no frame and is left out"]])
def test_view_hands_a_recording_over_and_says_what_was_left_out(
    made: Path, tmp_path: Path, lacking: list[str]
) -> None:
    bridge = "transect.view.rerun_bridge"
    with (
        mock.patch(f"{bridge}.save_scene", return_value=lacking) as save,
        mock.patch(f"{bridge}.show_scene", return_value=lacking) as show,
    ):
        saved = transect("view", made / "day", "--save", tmp_path / "day.rrd")
        shown = transect("view", made / "day", "--rerun")
    assert saved.returncode == shown.returncode == (3 if lacking else 0)
    assert saved.stderr == shown.stderr == "".join(f"warning: {each}\n" for each in lacking)
    assert saved.stdout == f"wrote {tmp_path / 'day.rrd'}\n"
    assert shown.stdout == ""
    assert save.call_args.args[1] == tmp_path / "day.rrd"
    assert show.call_args.args[0].recording.name == "day"


# products


def ids_of(made: Path) -> dict[str, str]:
    listed = document(transect("products", "find", made / "kept.gpkg", "--json"))["products"]
    return {each["name"]: each["id"] for each in listed}


def test_products_are_found_shown_and_traced_for_people_and_programs(made: Path) -> None:
    store = made / "kept.gpkg"
    names = ids_of(made)
    pose = next(identifier for name, identifier in names.items() if "pose" in name)
    shown = document(transect("products", "show", store, pose, "--json"))
    assert shown["id"] == pose
    assert pose[:8] in transect("products", "show", store, pose).stdout
    lineage = document(transect("products", "lineage", store, pose, "--json"))
    assert pose in json.dumps(lineage)
    traced = transect("products", "lineage", store, pose).stdout
    assert pose[:8] in traced
    assert len(traced.splitlines()) > 1  # the run, too
    events = document(transect("products", "history", store, "--json"))["events"]
    assert len(events) >= len(names)
    assert len(transect("products", "history", store).stdout.splitlines()) > len(events)


def test_what_is_not_in_a_store_is_answered_by_what_is(made: Path) -> None:
    done = transect("products", "find", made / "kept.gpkg", "--kind", "DEM")
    assert "no matching product" in done.stdout
    assert "kinds in the store: " in done.stdout
    assert document(transect("products", "find", made / "kept.gpkg", "--kind", "DEM", "--json")) == {
        "products": []
    }


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("find", "--area", "1,2,3"), "is not four numbers"),
        (("prune",), "--before, --keep-latest or --below"),
        (("show", "00000000"), "00000000"),
    ],
)
def test_products_name_what_is_wrong_with_a_question(made: Path, words: tuple[str, ...], what: str) -> None:
    done = transect("products", words[0], made / "kept.gpkg", *words[1:])
    assert done.returncode != 0
    assert what in done.stderr


def test_a_store_that_is_whole_is_verified(made: Path, tmp_path: Path) -> None:
    store = tmp_path / "kept.gpkg"
    assert transect("products", "keep", store, made / "fused").returncode == 0
    good = document(transect("products", "verify", store, "--json"))
    assert (good["problems"], good["products"] > 0) == ([], True)
    assert "0 problems" in transect("products", "verify", store).stdout


# request


def test_a_request_without_a_way_or_for_no_file_is_refused(made: Path, tmp_path: Path) -> None:
    asked = ("request", "Pose", "--recording", made / "day", "--store", tmp_path / "n.gpkg")
    planned = transect(*asked, "--from", "+0.5s", "--to", "+1s", "--area", "1,2,3,4", "--dry-run")
    assert (planned.returncode, "a Pose" in planned.stderr) == (1, True)
    assert not (tmp_path / "n.gpkg").exists()
    nothing = transect(*asked, "--format", "tum")
    assert (nothing.returncode, "these options are for a file" in nothing.stderr) == (2, True)
    (tmp_path / "there.tum").touch()
    assert transect(*asked, "-o", tmp_path / "there.tum").returncode == 2


# the rest


def test_info_tells_frames_clocks_and_everything_as_json(made: Path) -> None:
    told = transect("info", made / "day", "--frames", "--clocks")
    assert "log - sample time: median" in told.stdout
    found = document(transect("info", made / "day", "--frames", "--clocks", "--json"))
    assert {each["name"] for each in found["streams"]} == {"imu", "wheels", "truth/pose"}
    assert {"clocks", "frames", "findings"} <= set(found)
    formats = document(transect("info", made / "day", "--formats", "--json"))
    assert formats[str(made / "day")]["described"]["confidence"] > 0.9


def test_a_table_of_sensors_has_a_row_for_each(made: Path) -> None:
    found = document(transect("table", "sensors", made / "day", "--json"))
    assert {each["sensor"] for each in found["sensors"]} >= {"imu"}
    for layout in ("sensors", "matrix", "summary"):
        assert transect("table", "sensors", made / "day", "--layout", layout).returncode == 0
    markdown = transect("table", "sensors", made / "day", "--format", "markdown").stdout
    assert markdown.startswith("|")


def test_lists_have_the_same_entries_for_people_and_programs() -> None:
    nodes = document(transect("graph", "list", "--json"))["nodes"]
    listed = transect("graph", "list").stdout
    assert all(each["name"] in listed for each in nodes)
    sets = json.loads(transect("ls", "--json").stdout)
    assert all(each["name"] in transect("ls").stdout for each in sets)
    dusty = json.loads(transect("ls", "sdi", "--condition", "dust", "--json").stdout)
    assert 0 < len(dusty) < len(json.loads(transect("ls", "sdi", "--json").stdout))
    doctor = document(transect("doctor", "--json"))
    assert doctor["packages"]["numpy"] in transect("doctor").stdout


def test_new_recording_describes_a_table_and_shows_its_first_row(tmp_path: Path) -> None:
    table = tmp_path / "walk.csv"
    table.write_text("time,x,y,z\n" + "".join(f"{1_700_000_000 + i},{i},0,0\n" for i in range(30)))
    done = transect("new", "recording", table)
    assert done.returncode == 0
    assert "walk (Pose): at 2023-11-14T22:13:20" in done.stdout
    assert transect("info", tmp_path).returncode == 0
    refused = transect("new", "recording", table)
    assert (refused.returncode, "--force" in refused.stderr) == (2, True)
    assert transect("new", "recording", table, "--force").returncode == 0


# run


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("track.yaml",), "no recording: transect run track.yaml PATH..."),
        (("track.yaml", "day", "--extend"), "--extend needs a map: add --map MAP"),
        (("track.yaml/*", "day", "-o", "new", "--json"), "--json is for one run"),
        (("track.yaml/*", "day", "-o", "new", "--step"), "--step is for one run"),
        (("track.yaml", "day", "--step", "--jobs", 2), "leave --jobs out"),
        (("track.yaml", "day", "--view", "--json"), "use one of them"),
    ],
)
def test_options_of_run_that_do_not_go_together_are_refused(
    made: Path, words: tuple[object, ...], what: str
) -> None:
    done = transect("run", *words, cwd=made)
    assert (done.returncode, what in done.stderr) == (2, True), done.stderr
    assert not (made / "new").exists()


def test_a_run_that_is_played_from_a_page_prints_its_address_and_is_the_same(made: Path) -> None:
    def watch(replay: Replay, show: Callable[[str], object]) -> None:
        show("http://127.0.0.1:1/page")
        replay.play()

    with mock.patch("transect.view.watch", watch), mock.patch("webbrowser.open") as opened:
        words = ("run", "track.yaml", "day", "--view")
        quiet, loud = transect(*words, "--no-browser", cwd=made), transect(*words, cwd=made)
    for done in (quiet, loud):
        assert done.returncode == 0, done.stderr
        assert (
            "play the run at http://127.0.0.1:1/page\nclose the page, or press Ctrl-C, to stop\n"
            in done.stdout
        )
    opened.assert_called_once_with("http://127.0.0.1:1/page")
    alone = json.loads(transect("run", "track.yaml", "day", "--json", cwd=made).stdout)
    assert f"digest {alone['digest']}" in quiet.stdout


def test_implementations_that_a_recording_cannot_feed_are_listed_with_the_reason(
    made: Path, tmp_path: Path
) -> None:
    (tmp_path / "walk.csv").write_text(
        "time,x,y,z\n" + "".join(f"{1_700_000_000 + i},{i},0,0\n" for i in range(9))
    )
    assert transect("new", "recording", tmp_path).returncode == 0
    done = transect("run", "track.yaml/*", tmp_path, "-o", tmp_path / "runs", cwd=made)
    assert done.returncode == 2
    table = done.stdout[done.stdout.index("not run  ") :]
    assert "Track2D/Plain" in table
    assert "Track2D/Double" in table
    assert not (tmp_path / "runs").exists()


def test_a_strict_run_refuses_rows_that_cannot_be_read(made: Path, tmp_path: Path) -> None:
    rows = [f"{1_700_000_000 + i},{i},0,0" for i in range(9)]
    (tmp_path / "walk.csv").write_text("time,x,y,z\n" + "\n".join(rows) + "\n")
    assert transect("new", "recording", tmp_path).returncode == 0
    (tmp_path / "walk.csv").write_text("time,x,y,z\n" + "\n".join([*rows, "1700000009,nine,0,0"]) + "\n")
    lossy = transect("run", "same.yaml", tmp_path, cwd=made)
    assert (lossy.returncode, "1 lines, messages or files could not be read" in lossy.stderr) == (3, True)
    strict = transect("run", "same.yaml", tmp_path, "--strict", cwd=made)
    assert (strict.returncode, "walk.csv" in strict.stderr) == (1, True)


def test_help_of_run_describes_what_is_named(made: Path) -> None:
    plain = transect("run", "--help").stdout
    assert plain.startswith("Usage: transect run")
    named = transect("run", "track.yaml", "--help", cwd=made).stdout
    assert named.startswith("Track2D: Dead reckoning")
    assert "implementations: Plain, Double" in named
    assert "heading.gain" in named
    assert "Usage: transect run" in named
    without = transect("graph", "show", "same.yaml", cwd=made).stdout
    assert without.rstrip().endswith("none")
    shown = json.loads(transect("graph", "show", "track.yaml", "--json", cwd=made).stdout)
    assert [each["name"] for each in shown["implementations"]] == ["Plain", "Double"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("graph", "check", "none.yaml"), "there is no file or folder none.yaml"),
        (("graph", "draw", "DemBuilding", "-o", "x.svg"), "there is no picture of it"),
        (("graph", "draw", "track.yaml", "-o", "x.png"), ".svg or .mmd"),
        (("export", "day", "--over", "map.tif", "-o", "x.mcap"), "--over is for --replay"),
        (("export", "day", "--replay", "-o", "x.mcap"), "a replay is a film, not "),
        (("inject", "--fault", "dust", "-o", "x"), "nothing to open: give the path of a recording"),
        (("draw", "frames", "day", "-o", "x.png"), "day has no frames to draw"),
        (("archive", "validate", ".", "--alternate-file-paths", "day,none"), "there is no folder none"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused_and_nothing_is_written(
    made: Path, words: tuple[str, ...], what: str
) -> None:
    before = sorted(made.iterdir())
    done = transect(*words, cwd=made)
    assert (done.returncode, what in done.stderr) == (2, True), done.stderr
    assert sorted(made.iterdir()) == before


def test_a_catalogue_without_misprints_is_good(made: Path, tmp_path: Path) -> None:
    with mock.patch("transect.datasets.marulan.catalogue.find_misprints", return_value=[]):
        done = transect("check", "--catalogue", "sdi")
    assert (done.returncode, done.stdout) == (0, "")


def test_a_fault_and_a_data_set_are_the_same_for_people_and_programs(tmp_path: Path) -> None:
    fault = json.loads(transect("inject", "--fault", "dust", "--json").stdout)
    assert fault["name"] == "dust"
    assert fault["what"] in " ".join(transect("inject", "--fault", "dust").stdout.split())
    days = json.loads(transect("ls", "rosario", "--json").stdout)
    listed = transect("ls", "rosario").stdout
    assert all(day["name"] in listed for day in days)
    own = {"TRANSECT_CACHE_DIR": str(tmp_path / "cache")}
    facts = json.loads(transect("cache", "info", "--json", **own).stdout)
    assert transect("cache", "info", **own).stdout.startswith(
        f"{facts['folder']}: 0 parsed files, 0 B of at most"
    )


def test_pictures_are_drawn_of_streams_of_two_clocks_and_of_the_path_of_a_run(
    made: Path, tmp_path: Path
) -> None:
    table = "time,x,y,z\n" + "".join(f"{100 + i},{i},0,0\n" for i in range(9))
    (tmp_path / "walk.csv").write_text(table)
    (tmp_path / "recording.yaml").write_text(
        "name: walk\nstreams:\n- {name: walk, type: Pose, file: walk.csv, delimiter: ',', header: 1, "
        "time: {column: time, unit: s, clock: device}, columns: {x: x, y: y, z: z}}\n"
    )
    both = transect("draw", "streams", made / "day", tmp_path, "-o", tmp_path / "streams.png", "--dpi", 50)
    assert both.returncode == 0, both.stderr
    assert "not drawn, as they use another clock than device: imu, wheels, truth/pose" in both.stderr
    path = transect("draw", "track", made / "fused", "-o", tmp_path / "track.png", "--dpi", 50)
    assert (path.returncode, path.stdout) == (0, f"wrote {tmp_path / 'track.png'}\n")
    assert (tmp_path / "track.png").read_bytes().startswith(b"\x89PNG")


def walk(folder: Path, rows: int = 9) -> str:
    """Write a table of poses and its description; return the table."""
    text = "time,x,y,z\n" + "".join(f"{1_700_000_000 + i},{i},0,0\n" for i in range(rows))
    (folder / "walk.csv").write_text(text)
    assert transect("new", "recording", folder).returncode == 0
    return text


def test_a_table_without_rows_has_nothing_to_play(made: Path, tmp_path: Path) -> None:
    text = walk(tmp_path)
    (tmp_path / "walk.csv").write_text(text.splitlines()[0] + "\n")
    done = transect("run", "same.yaml", tmp_path, cwd=made)
    assert (done.returncode, "has nothing to play" in done.stderr) == (2, True)
    assert "walk: no samples" in done.stderr
    assert "transect info lists streams" in done.stderr
    cut = transect("run", "same.yaml", made / "day", "--wire", "pose=truth/pose", "--from", "+1h", cwd=made)
    assert (cut.returncode, "there is nothing between these times" in cut.stderr) == (2, True)
    assert "it was recorded from 2020-09-13T12:26:40" in cut.stderr


def test_what_is_no_sensor_is_named_as_not_checked(tmp_path: Path) -> None:
    walk(tmp_path, 60)
    (tmp_path / "words.csv").write_text("word,other\na,b\nc,d\n")
    with (tmp_path / "recording.yaml").open("a") as description:
        description.write("- {name: words, type: Record, file: words.csv, delimiter: ',', header: 1}\n")
    done = transect("check", tmp_path)
    assert done.returncode in (0, 4), done.stderr
    assert "(no timestamps, or not a sensor): words" in " ".join(done.stdout.split())
    assert document(transect("check", tmp_path, "--json"))["not_checked"] == ["words"]
    assert max(map(len, done.stdout.splitlines()[1:])) <= 80  # the name of the folder stands in the first
