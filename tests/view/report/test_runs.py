"""What a page says of runs: how long, how good, which is better, and what it cannot tell."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.cli.run_sample import START_NS, write_project

import transect
from transect import formats
from transect.base.clocks import NS
from transect.evaluation.result import Result
from transect.evaluation.runs import judge_run
from transect.recording import Recording, stream_of_values
from transect.types import Pose
from transect.view.axes import TimeAxis
from transect.view.report import ReportOptions, gather, write_page
from transect.view.report.accuracy import write_errors
from transect.view.report.facts import ReportFacts, RunFacts
from transect.view.report.maps import draw_errors
from transect.view.report.markup import PageAssets
from transect.view.report.sentences import summarise


def with_truth(day: Recording) -> Recording:
    """Return the sample's recording with a truth that it drives along, half a metre beside."""
    t_ns = START_NS + NS * np.arange(21) // 10
    zero = np.zeros(21)
    columns = {"x": 0.05 * np.arange(21), "y": zero + 0.5, "z": zero, "qx": zero, "qy": zero, "qz": zero}
    columns |= {"qw": zero + 1}
    truth = stream_of_values("truth", t_ns, columns, type=Pose, frame="map", child="base", role="truth")
    return day.replace(streams=(*day, truth))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one recording, one with twice the gain, and one that broke; all judged by truth."""
    project = write_project(tmp_path_factory.mktemp("project"))
    day = with_truth(transect.open(project / "day"))
    formats.write(day, project / "judged", "parquet")
    for name, gain in (("one", 1.0), ("two", 2.0)):
        ran = transect.run(
            project / "track.yaml", project / "judged", set={"heading.gain": gain}, out=project / name
        )
        judge_run(ran, transect.open(project / "judged"), draw=lambda _: None)
    return project


@pytest.fixture(scope="module")
def report(folder: Path) -> ReportFacts:
    paths = [str(folder / name) for name in ("one", "two")]
    day = partial(lambda paths, form, options: transect.open(*paths))
    return gather(paths, day, ReportOptions(check=False))[0]


def told(report: ReportFacts, *runs: RunFacts) -> list[str]:
    return summarise(replace(report, runs=runs))


def test_a_run_is_told_with_its_length_and_error(report: ReportFacts) -> None:
    one, two = report.runs
    said = told(report, one, two)
    assert any("has a length of" in each for each in said), said
    assert any("position RMSE is" in each and "RMSE" in each for each in said), said
    assert any("more accurate" in each or "equally accurate" in each for each in said), said


def better(run: RunFacts, factor: float) -> RunFacts:
    """Return the run with all errors times a factor."""

    def scaled(result: Result) -> Result:
        ate = result.metrics["ate"]
        errors = {name: factor * value for name, value in ate["translation"].items()}
        return replace(result, metrics={**result.metrics, "ate": {**ate, "translation": errors}})

    results = tuple(scaled(r) if "ate_translation" in r.arrays else r for r in run.results)
    return replace(run, results=results)


def test_the_better_of_two_runs_is_named_with_its_factor(report: ReportFacts) -> None:
    one, two = report.runs
    two = better(replace(two, results=one.results), 3.0)
    other = "{} is more accurate than {} by a factor of 3 (RMSE)."
    assert told(report, one, two)[-1] == other.format(one.label, two.label)
    assert told(report, two, one)[-1] == other.format(one.label, two.label)
    alike = better(two, 1.01 / 3)
    assert told(report, one, alike)[-1] == f"{one.label} and {two.label} are about equally accurate."
    same = replace(two, run=one.run)
    assert told(report, one, same)[-1] == f"{one.label} and {two.label} have identical outputs."
    (judged,) = (r for r in two.results if "ate_translation" in r.arrays)
    elsewhere = replace(two, results=(replace(judged, reference="another truth"),))
    assert "accurate" not in told(report, one, elsewhere)[-1]


def test_what_a_run_lacks_is_told(report: ReportFacts) -> None:
    one = report.runs[0]
    (judged,) = (r for r in one.results if "ate_translation" in r.arrays)
    assert any(
        "there is no ground truth to evaluate it against" in s for s in told(report, replace(one, results=()))
    )
    failed = replace(judged, arrays={}, metrics={}, failure="no common times")
    alone = replace(one, results=(failed,))
    assert any("it could not be evaluated: no common times" in s for s in told(report, alone))
    none = replace(one, trajectory=None)
    assert any("has no poses among its outputs" in s for s in told(report, none))
    assert any("among its outputs: none" in s for s in told(report, replace(none, document={"outputs": {}})))
    gone = replace(one, recording=None, gone="day does not exist")
    assert any(s.endswith("could not be opened: day does not exist.") for s in told(report, gone))
    broken = replace(one, run=replace_status(one, "failed"))
    assert told(report, broken)[-1] == f"Run {one.label} is not complete: it failed."


def replace_status(facts: RunFacts, status: str) -> transect.Run:
    run = transect.Run.load(facts.folder)
    object.__setattr__(run, "status", status)
    return run


def test_errors_of_runs_without_times_attitudes_or_distances_are_drawn_as_far_as_they_go(
    report: ReportFacts,
) -> None:
    one = report.runs[0]
    whole = write_errors(PageAssets(), replace(report, runs=(one,)))
    for title in ("Position error", "Attitude error", "Height", "Position error over distance travelled"):
        assert title in str(whole), title
    assert one.axis is not None
    untimed = replace(one, axis=TimeAxis("a", "index", 0, 10 * NS))
    page = str(write_errors(PageAssets(), replace(report, runs=(untimed,))))
    assert "<b>Position error</b>" not in page
    assert "Position error over distance travelled" in page
    (judged,) = (r for r in one.results if "ate_translation" in r.arrays)
    arrays = {k: v for k, v in judged.arrays.items() if k not in ("ate_rotation", "distance")}
    arrays = {k: v for k, v in arrays.items() if not k.startswith("drift")}
    bare = replace(one, results=(replace(judged, arrays=arrays),))
    page = str(write_errors(PageAssets(), replace(report, runs=(bare,))))
    assert "<b>Position error</b>" in page
    assert "Attitude error" not in page
    assert "Position error over distance travelled" not in page
    assert "Drift" not in page


def test_a_map_of_errors_needs_a_judgement(report: ReportFacts) -> None:
    one = report.runs[0]
    assert draw_errors(PageAssets(), replace(one, results=()), 1.0) is None
    drawn = str(draw_errors(PageAssets(), one, 1.0))
    assert drawn.count("<svg") >= 1


def test_the_page_of_runs_names_both(report: ReportFacts) -> None:
    page = write_page(report)
    for run in report.runs:
        assert f"Conclusions of {run.label}" in page or run.label in page
    assert "<b>Position error</b>" in page
