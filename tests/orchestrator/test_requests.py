"""A product is asked for: found, planned, made, kept, and explained."""

import json
import re
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from tests.commands import transect

from transect.base.clocks import NS
from transect.errors import ParseError, UsageError
from transect.formats import open as open_recording
from transect.integrity.table import VerdictTable, table_of
from transect.orchestrator import Plan, Preferences, ProductRequest, answer, load_preferences, make_plan
from transect.orchestrator.requests import NoPlanError
from transect.orchestrator.results import NoResultError
from transect.products import open_store
from transect.types import Verdict


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `day`: wheels, IMU and fixes; and `scans`: a lidar and an inertial navigation."""
    folder = tmp_path_factory.mktemp("field")
    streams = [word for name in ("Odometry", "Imu", "Gps/*") for word in ("--streams", name)]
    assert transect("simulate", "rosario", "-o", "day", "--seconds", 6, *streams, cwd=folder).returncode == 0
    scans = [word for name in ("Lidar*", "Gnss*") for word in ("--streams", name)]
    small = ("--seconds", 5, "--scale", 0.05)
    assert transect("simulate", "etna", "-o", "scans", *small, *scans, cwd=folder).returncode == 0
    return folder


@pytest.fixture(scope="module")
def asked(field: Path) -> dict[str, object]:
    """What the first request for a pose printed."""
    told = transect("request", "Pose", "--recording", "day", "--store", "a.gpkg", "--json", cwd=field)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def test_the_first_request_runs_a_plan_and_the_second_finds_what_it_made(
    field: Path, asked: dict[str, object]
) -> None:
    assert asked["stored"] is False
    assert asked["steps"] == [
        "run PoseFusion/ErrorStateFilter (wheels from Odometry, imu from Imu, fix from Gps/Fix) for pose"
    ]
    told = transect("request", "pose", "--recording", "day", "--store", "a.gpkg", "--json", cwd=field)
    again = json.loads(told.stdout)
    assert (again["product"], again["stored"]) == (asked["product"], True)
    told = transect("request", "Pose", "--recording", "day", "--store", "a.gpkg", cwd=field).stdout
    assert told.startswith("in a.gpkg:\n")
    assert str(asked["product"])[:9] in told
    told = transect("products", "reproduce", "a.gpkg", str(asked["product"])[:9], cwd=field)
    assert "identical" in told.stdout


@pytest.mark.parametrize("option", ["--frame=elsewhere", "--area=0,0,1,1"])
def test_what_lies_elsewhere_is_planned_again(field: Path, asked: dict[str, object], option: str) -> None:
    arguments = ("request", "Pose", "--recording", "day", "--store", "a.gpkg", "--dry-run", "--json")
    told = json.loads(transect(*arguments, option, cwd=field).stdout)
    assert (told["product"], bool(told["steps"]), told["refused"]) == (None, True, [])


def test_what_would_be_as_old_again_is_not_recomputed(field: Path, asked: dict[str, object]) -> None:
    arguments = ("request", "Pose", "--recording", "day", "--store", "a.gpkg", "--json")
    done = transect(*arguments, "--max-age=0.001", cwd=field)
    told = json.loads(done.stdout)
    assert (done.returncode, told["stored"], told["product"]) == (4, True, asked["product"])
    assert "before the recording, and at most 0.001 s were asked for" in told["not_met"]


def test_a_product_of_other_files_is_no_answer(field: Path, asked: dict[str, object]) -> None:
    arguments = ("request", "Pose", "--recording", "scans", "--store", "a.gpkg", "--dry-run", "--json")
    told = json.loads(transect(*arguments, cwd=field).stdout)
    assert told["stored"] is False
    assert [each["why"] for each in told["refused"]] == ["made from another recording, sequence00 (day)"]


def test_compounds_stand_one_behind_the_other(field: Path, tmp_path: Path) -> None:
    recording = open_recording(field / "scans")
    preferences = Preferences({"DEM": ["DemGeneration/FromPoses"], "Pose": ["PoseFusion"]})
    with open_store(tmp_path / "a.gpkg") as store:
        found = answer(ProductRequest("DEM"), recording, store, preferences=preferences)
        assert isinstance(found.plan, Plan)
        assert found.plan.step is not None
        assert [step.compound.text.name for step in found.plan.step.before] == ["PoseFusion"]
        assert found.product is not None
        assert (found.product.name, found.product.payload.format) == ("dem", "tif")
        [run] = store.lineage(found.product.id).parents
        assert [parent.product and parent.product.kind for parent in run.parents] == ["Pose", "Inputs"]
        told = transect("products", "reproduce", tmp_path / "a.gpkg", found.product.id[:9], cwd=field)
    assert "identical" in told.stdout


def verdicts_on(stream: str, bad: int, windows: int = 10) -> VerdictTable:
    """A stream is BAD with SLIP in the first of ten windows."""
    judged = [("BAD", 0.0) if n < bad else ("OK", 1.0) for n in range(windows)]
    said = [
        Verdict(
            stream, stream, n * NS, (n + 1) * NS, "X05", state=state, raw=state, score=score, reason="SLIP"
        )
        for n, (state, score) in enumerate(judged)
    ]
    return VerdictTable(table_of(said, {"X05": "cross"}))


@pytest.mark.parametrize(("bad", "used"), [(5, True), (6, False)])
def test_a_sensor_that_is_bad_for_most_of_the_time_is_not_used(
    field: Path, tmp_path: Path, bad: int, used: bool
) -> None:
    recording = open_recording(field / "day")
    with open_store(tmp_path / "a.gpkg") as store:
        found = answer(
            ProductRequest("Pose"), recording, store, check=verdicts_on("Odometry", bad), dry_run=True
        )
    assert isinstance(found.plan, Plan)
    assert found.plan.step is not None
    assert ("Odometry" in dict(found.plan.step.wiring).values()) is used
    assert [(each.what, each.why) for each in found.plan.refused] == (
        [] if used else [("Odometry", "BAD for 6 of 10 s (SLIP)")]
    )


def test_how_long_a_sensor_was_bad_counts_and_not_in_how_many_windows(field: Path, tmp_path: Path) -> None:
    recording, table = open_recording(field / "day"), verdicts_on("Odometry", 1)
    silence, *rest = table
    lasting = replace(silence, t0_ns=-90 * NS, reason="NO_DATA")
    verdicts = VerdictTable(table_of([lasting, *rest], {"X05": "cross"}))
    with open_store(tmp_path / "a.gpkg") as store:
        found = answer(ProductRequest("Pose"), recording, store, check=verdicts, dry_run=True)
    assert isinstance(found.plan, Plan)
    refused = [(each.what, each.why) for each in found.plan.refused]
    assert refused == [("Odometry", "BAD for 91 of 100 s (NO_DATA)")]


def test_where_there_is_no_way_everything_that_was_tried_is_told(field: Path, tmp_path: Path) -> None:
    with open_store(tmp_path / "a.gpkg") as store, pytest.raises(NoPlanError) as error:
        answer(ProductRequest("DEM"), open_recording(field / "day"), store)
    tried = {refusal.what for refusal in error.value.plan.refused}
    assert {"DemGeneration/FromLidar", "DemGeneration/FromPoses", "DemGeneration/FromStereo"} <= tried
    told = transect("request", "DEM", "--recording", field / "day", "--store", tmp_path / "b.gpkg")
    assert (told.returncode, "PointCloud" in told.stderr) == (1, True)


def test_three_refusals_are_shown_and_all_on_request(field: Path, tmp_path: Path) -> None:
    asked = ("request", "DEM", "--recording", field / "day", "--store", tmp_path / "b.gpkg", "--dry-run")
    few, every = transect(*asked), transect(*asked, "--all")
    assert "more were refused: --all lists them" in few.stderr
    assert "more were refused" not in every.stderr
    counts = [
        len(re.findall(r"^\s+(?:why:\s+)?not [A-Z]", each.stderr, re.MULTILINE)) for each in (every, few)
    ]
    assert counts[0] > counts[1] == 3


def test_a_typo_is_answered_by_what_there_is(field: Path) -> None:
    with pytest.raises(UsageError, match="no compound gives a Trajectry") as error:
        make_plan("Trajectry", open_recording(field / "day"), load_preferences())
    assert "Trajectory" in error.value.hint


@pytest.mark.parametrize(
    "text", ["[1, 2]", "Pose: PoseFusion", "max_bad_ratio: 2", "Pose: [", "max_bad_ratio: [1]"]
)
def test_preferences_that_cannot_be_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ParseError):
        load_preferences(tmp_path / "p.yaml")


def test_preferences_of_a_person_come_before_ours(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("Pose: [WheelDrift]\n")
    own = load_preferences(tmp_path / "p.yaml")
    assert own.rank("pose", "WheelDrift/FourWheelSteer") == 0
    assert own.order["DEM"] == load_preferences().order["DEM"]
    assert own.max_bad_ratio == load_preferences().max_bad_ratio


def test_a_recording_that_cannot_be_fused_says_why_and_nothing_is_kept(tmp_path: Path) -> None:
    """In one second the robot neither turns nor speeds up: nothing observes its heading."""
    streams = ("--streams", "Imu", "--streams", "Gps/Fix")
    assert (
        transect("simulate", "rosario", "-o", "short", "--seconds", 1, *streams, cwd=tmp_path).returncode == 0
    )
    told = transect("request", "Pose", "--recording", "short", "--store", "a.gpkg", cwd=tmp_path)
    assert told.returncode == 1
    assert "PoseFusion/ErrorStateFilter gave no pose" in told.stderr
    assert "heading" in told.stderr
    typed = told.stderr.partition("try:")[2].split()
    assert typed[:5] == ["transect", "run", "PoseFusion/ErrorStateFilter", "short", "-o"]
    with open_store(tmp_path / "a.gpkg", create=False) as store:
        assert not store.find()
    with (
        open_store(tmp_path / "b.gpkg") as store,
        pytest.raises(NoResultError, match="gave no pose") as error,
    ):
        answer(ProductRequest("Pose"), open_recording(tmp_path / "short"), store)
    assert "heading" in error.value.why


def test_a_product_without_a_score_is_not_recomputed_repeatedly(field: Path) -> None:
    command = ("request", "innovations", "--recording", "day", "--store", "q.gpkg", "--min-quality", 0.5)
    told = [transect(*command, cwd=field) for _ in range(2)]
    assert [each.returncode for each in told] == [4, 4]
    assert all("BAD: it has no score, as nothing judged it" in each.stderr for each in told)
    assert "run PoseFusion" in told[0].stdout
    assert told[1].stdout.startswith("in q.gpkg:\n")


def test_a_product_of_another_recording_is_said_to_be_that(field: Path, tmp_path: Path) -> None:
    streams = [word for name in ("Odometry", "Imu", "Gps/*") for word in ("--streams", name)]
    assert transect("simulate", "rosario", "-o", tmp_path / "later", "--seconds", 6, "--seed", 7, *streams)
    assert transect("request", "Pose", "--recording", "day", "--store", "a.gpkg", cwd=field).returncode == 0
    asked = ("request", "Pose", "--recording", tmp_path / "later", "--store", "a.gpkg", "--dry-run")
    told = transect(*asked, cwd=field).stdout
    assert "not used from the store: " in told
    assert ": made from another recording, sequence00 (day)" in told
    assert "is planned" not in told


def test_a_refusal_states_its_reason(field: Path, tmp_path: Path) -> None:
    told = transect("request", "DEM", "--recording", field / "day", "--store", tmp_path / "b.gpkg").stderr
    assert told.count("there is no way to make a DEM") == 1
    assert "  why:   not DemGeneration/" in told
    assert "  try:   another recording" in told


def test_a_part_of_a_recording_without_times_is_refused(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for number in range(3):
        cv2.imwrite(str(tmp_path / "images" / f"{number}.png"), np.zeros((8, 8), np.uint8))
    asked = ("request", "Pose", "--recording", "images", "--store", "a.gpkg", "--from", "+1s")
    told = transect(*asked, cwd=tmp_path)
    assert told.returncode == 2
    assert "has no times, so no part of it can be requested" in told.stderr
