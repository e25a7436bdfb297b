"""A request with checks: wheels slip, another odometry takes over; all of it is kept and reproducible."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.commands import transect

from transect.base.clocks import NS
from transect.errors import UsageError
from transect.formats import open as open_recording
from transect.orchestrator import Orchestrator, ProductRequest, answer, load_policy, plan_fallbacks
from transect.orchestrator.fallback_plans import FallbackResults
from transect.orchestrator.forms import ProductForm
from transect.orchestrator.switches import SuspectSpan
from transect.products import ProductQuery, open_store
from transect.products.reproduction import reproduce
from transect.products.run_products import stream_of
from transect.recording import Recording
from transect.simulation.day import WorldOptions, simulate, write_day
from transect.types import Verdict

POLICY = """
dwell: 3.0
kinds:
  Pose:
    joined_by: PoseSwitching
    parameter: switch.use
    choices:
      - {use: PoseFusion/ErrorStateFilter, unless: [wheels]}
      - {use: VisualOdometry/KltKeyframes, unless: [camera]}
      - {use: PoseFusion/FixedLagSmoother}
"""
ASKING = ("request", "Pose", "--recording", "slipped", "--check", "--policy", "policy.yaml")


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `slipped`: wheels that slip from 4 s to 8 s, and fixes that show it."""
    folder = tmp_path_factory.mktemp("slip")
    streams = [word for name in ("Odometry", "Imu", "Gps/Fix") for word in ("--streams", name)]
    transect("simulate", "rosario", "-o", "day", "--seconds", 13, *streams, cwd=folder)
    when = ("--from", "+4s", "--to", "+8s", "--streams", "Odometry")
    transect("inject", "day", "--fault", "wheel_slip", "--severity", 1, *when, "-o", "slipped", cwd=folder)
    (folder / "policy.yaml").write_text(POLICY)
    return folder


@pytest.fixture(scope="module")
def asked(field: Path) -> dict[str, object]:
    told = transect(*ASKING, "--json", cwd=field)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def test_a_dry_run_shows_the_alternatives_in_eighty_columns(field: Path) -> None:
    told = transect(*ASKING, "--dry-run", cwd=field)
    assert "- PoseFusion/ErrorStateFilter, unless wheels is BAD (Odometry)" in told.stdout
    assert "not VisualOdometry/KltKeyframes" in told.stdout
    assert max(map(len, told.stdout.splitlines())) <= 80
    assert "from the start" not in told.stdout
    transect(*ASKING, "--dry-run", "--store", "none.gpkg", cwd=field)
    assert not (field / "none.gpkg").exists()


def test_every_switch_is_a_product_with_its_reason(field: Path, asked: dict[str, object]) -> None:
    with open_store(field / "products.gpkg") as store:
        kept = [json.loads(store.content(each.id)) for each in store.find(ProductQuery(kind="Switch"))]
    away, *_ = sorted(kept, key=lambda switch: switch["t_ns"])
    told = asked["switches"]
    assert isinstance(told, list)
    assert [each["t_ns"] for each in told] == sorted(switch["t_ns"] for switch in kept)
    assert away["because"] == ["Odometry is BAD (SLIP)"]
    assert (away["before"], away["after"]) == ("PoseFusion/ErrorStateFilter", "PoseFusion/FixedLagSmoother")
    start = open_recording(field / "slipped").span
    assert start is not None
    assert 3.0 <= (away["since_ns"] - start[0]) / 1e9 < (away["t_ns"] - start[0]) / 1e9 <= 8.0


def test_the_trajectory_is_one_whose_poses_know_their_source_and_is_reproduced(
    field: Path, asked: dict[str, object]
) -> None:
    with open_store(field / "products.gpkg") as store:
        product = store.get(str(asked["product"]))
        [run] = store.lineage(product.id).parents
        assert run.product is not None
        assert len(run.parents) == 2
        track = stream_of(product, store.content(product.id), "pose")
    assert (product.name, track.child, track.role) == ("pose", "base_link", "estimate")
    assert np.all(np.diff(track.t_ns) > 0)
    told = transect("products", "reproduce", "products.gpkg", product.id[:9], cwd=field)
    assert "identical" in told.stdout


def test_one_alternative_alone_is_no_fallback(field: Path) -> None:
    recording = open_recording(field / "slipped")
    assert plan_fallbacks("Pose", recording, load_policy()) is None
    assert plan_fallbacks("map", recording, load_policy()) is None
    assert plan_fallbacks("DEM", recording, load_policy()) is None


def test_an_orchestrator_finds_plans_and_delivers(
    field: Path, asked: dict[str, object], tmp_path: Path
) -> None:
    with open_store(field / "products.gpkg") as store:
        orc = Orchestrator(open_recording(field / "slipped"), store)
        found = orc.request("Pose", max_age=10.0)
        assert found.product is not None
        assert found.plan is None
        head, first, *_ = orc.deliver(found, ProductForm("csv", unit="mm")).decode().splitlines()
    with open_store(tmp_path / "empty.gpkg") as empty:
        orc = Orchestrator(open_recording(field / "slipped"), empty)
        planned = orc.request("Pose", dry_run=True)
        assert planned.plan is not None
        with pytest.raises(UsageError, match="only planned"):
            orc.deliver(planned, ProductForm())
    assert "mm" in head
    assert first.count(",") == head.count(",")


def test_a_map_omits_the_margin_before_suspect_windows_and_no_switch_is_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = ("LaserHorizontal", "Nav", "RadarSpectrum")
    day = simulate("marulan", WorldOptions(seconds=0.5, streams=streams)).recording
    assert day.span is not None
    start_ns, tenth = day.span[0], NS // 10
    edges = [(start_ns + n * tenth, start_ns + (n + 1) * tenth) for n in range(5)]
    verdicts = [
        Verdict(
            "laser", "LaserHorizontal", *edge, state="BAD" if n == 4 else "OK", raw="BAD" if n > 2 else "OK"
        )
        for n, edge in enumerate(edges)
    ]
    monkeypatch.setattr(
        "transect.integrity.check", lambda _: SimpleNamespace(by_stream={"LaserHorizontal": verdicts})
    )
    (tmp_path / "own.yaml").write_text(
        "dwell: 0.1\nkinds:\n  map: {joined_by: LaserMapping, parameter: assembly.use, margin: 0.2, choices:"
        " [{use: laser, unless: [laser]}, {use: radar, unless: [radar]}]}\n"
    )
    with open_store(tmp_path / "made.gpkg") as store:
        made = answer(
            ProductRequest("map"), day, store, check=True, policy=load_policy(tmp_path / "own.yaml")
        ).plan
        assert made is not None
        assert made.fallbacks is not None
        assert made.fallbacks.results is not None
        told = store.get(made.fallbacks.results.made[0]).provenance.parameters["request"]["set"][
            "assembly.use"
        ]
    [switch] = made.fallbacks.results.switches
    assert (switch.since_ns, switch.t_ns) == (start_ns + 3 * tenth, start_ns + 5 * tenth)
    assert told == f"laser; {start_ns + 1 * tenth} radar"
    assert "0.2 s before" in " ".join(str(made).split())


@pytest.fixture(scope="module")
def seen() -> Recording:
    """A robot with wheels, an IMU and two cameras."""
    streams = ("Odometry", "Imu", "Zed/*")
    return simulate("rosario", WorldOptions(seconds=1.0, scale=0.05, streams=streams)).recording


@pytest.mark.parametrize("kind", ["map", "DEM"])
def test_a_map_is_planned_along_the_path_that_several_odometries_make(
    seen: Recording, tmp_path: Path, kind: str
) -> None:
    with open_store(tmp_path / "a.gpkg") as store:
        plan = answer(ProductRequest(kind), seen, store, check=True, dry_run=True).plan
    assert plan is not None
    assert plan.step is not None
    assert plan.fallbacks is not None
    assert plan.step.compound.name == "DemGeneration/FromStereoAndPoses"
    fed = dict(plan.step.wiring)
    assert (fed["left"], fed["right"]) == ("Zed/Left", "Zed/Right")
    assert fed["pose"] == plan.fallbacks.final_step.name == "PoseFusion/BatchSmoother:pose"
    assert max(map(len, str(plan).splitlines())) <= 80


def test_a_map_is_made_along_an_odometry_that_has_one_unless_that_was_suspect(seen: Recording) -> None:
    plan = plan_fallbacks("Pose", seen, load_policy())
    assert plan is not None
    assert plan.mapping_step == plan.smoothing
    mapped = replace(plan, choices=tuple(replace(each, map_radius=30.0) for each in plan.choices))
    assert mapped.mapping_step.name == "VisualOdometry/KltKeyframes:pose"
    assert (
        replace(mapped, results=FallbackResults(suspect=(SuspectSpan("wheels", 0, 1),))).mapping_step
        == mapped.mapping_step
    )
    assert (
        replace(mapped, results=FallbackResults(suspect=(SuspectSpan("motion", 0, 1),))).mapping_step
        == plan.smoothing
    )


@pytest.mark.parametrize("drift_covariance", [True, False])
def test_the_smoother_weights_all_sensors_by_their_agreement_and_is_reproducible(
    tmp_path: Path, drift_covariance: bool
) -> None:
    streams = ("Lidar", "Gnss/Imu", "Platform/MotorEncoders")
    write_day(simulate("etna", WorldOptions(seconds=4.0, scale=0.1, streams=streams)), tmp_path / "day")
    policy = load_policy()
    choices = [replace(each, drift_covariance=drift_covariance) for each in policy.kinds["Pose"].choices]
    policy.kinds["Pose"] = replace(policy.kinds["Pose"], choices=choices)
    with open_store(tmp_path / "made.gpkg") as store:
        asked = answer(
            ProductRequest("Pose"), open_recording(tmp_path / "day"), store, check=True, policy=policy
        )
        assert asked.plan is not None
        assert asked.plan.fallbacks is not None
        assert asked.plan.fallbacks.results is not None
        assert asked.product is not None
        [weighed] = asked.plan.fallbacks.results.agreement
        assert all(word in weighed for word in ("motion map error of position", "wheels along"))
        assert weighed in str(asked.plan).replace("\n  ", " ")
        [run] = store.lineage(asked.product.id).parents
        assert run.product is not None
        fed = [each.product.name for each in run.parents if each.product]
        assert fed == (["pose", "covariance", "pose"] if drift_covariance else ["pose", "pose"])
        assert reproduce(store, asked.product.id).identical
