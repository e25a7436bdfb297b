"""Figures 24 to 38 of SDI from recordings, the moments that they show, and its statements."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.integrity.recordings import START_NS, drive, radar, yard

from transect.base.clocks import NS
from transect.datasets.marulan import figures as module
from transect.datasets.marulan.excerpts import Excerpt, choose_excerpts, conditions_among
from transect.datasets.marulan.figures import FigureLimits, draw_excerpts, mask_returns
from transect.datasets.marulan.statements import STATEMENTS, ObscurantEffect, judge_statements, measure_effect
from transect.draw.moment import ImagePanel, PixelRowPanel, RangePanel, WaterfallPanel
from transect.errors import StreamError, UsageError
from transect.integrity import VerdictTable, check
from transect.recording import Recording
from transect.robots.moment import Moment, show_ranges
from transect.simulation.day import WorldOptions, simulate

CHECKS = ("C01", "C02", "C03", "X01", "C06")
Judged = tuple[Recording, VerdictTable]


def judge(air: str, seed: int = 0) -> Judged:
    """Return nine seconds at Marulan; from 2.5 s to 6.5 s there is something in the air."""
    streams = ("LaserHorizontal", "LaserVertical", "RadarRangeBearing", "VideoVisual")
    options = WorldOptions(9, seed, scale=0.03, streams=streams, conditions={"air": air})
    recording = simulate("marulan", options).recording
    return recording, check(recording, checks=CHECKS)


@pytest.fixture(scope="module")
def days() -> dict[str, Judged]:
    return {air: judge(air) for air in ("clear", "dust", "rain")}


def since(shot: Excerpt) -> float:
    return (shot.at_ns - shot.first_ns) / NS


def test_a_clear_recording_is_shown_at_its_start_and_a_dusty_one_where_it_is_worst(days: dict[str, Judged]):
    clear, dust = choose_excerpts([days["clear"], days["dust"]], seconds=1.0)
    assert (clear.conditions, since(clear)) == (("clear",), 0.5)
    assert dust.conditions == ("dust",)
    assert 3.0 <= since(dust) <= 6.0
    assert (dust.t1_ns - dust.t0_ns) / NS == 1.0


def test_a_dusty_recording_alone_shows_its_clear_start_too_and_times_may_be_given(days: dict[str, Judged]):
    shots = choose_excerpts([days["dust"]], seconds=1.0)
    assert [shot.conditions for shot in shots] == [("clear",), ("dust",)]
    given = choose_excerpts([days["clear"], days["dust"]], ["+4s", "+5s"], 1.0)
    assert [since(shot) for shot in given] == [4.0, 5.0]
    assert [shot.conditions for shot in given] == [("clear",), ("dust",)]
    with pytest.raises(UsageError, match="has nothing at"):
        choose_excerpts([days["clear"]], ["+60s"])
    with pytest.raises(UsageError, match="is given 3 times"):
        choose_excerpts([days["clear"]], ["+1s", "+2s", "+3s"])


def test_conditions_are_those_of_labels_else_of_the_name_else_of_verdicts(days: dict[str, Judged]):
    recording, verdicts = days["dust"]
    assert conditions_among(recording, verdicts) == ("dust",)
    bare = replace(recording, conditions={})
    assert conditions_among(replace(bare, name="07-StaticSmoke-Human"), verdicts) == ("smoke", "human")
    assert conditions_among(replace(bare, name="day"), verdicts) == ("cloud",)
    rain, falling = days["rain"]
    assert conditions_among(replace(rain, conditions={}, name="day"), falling) == ("rain",)
    assert conditions_among(replace(rain, conditions={"environment": ("clear", "after rain")}), falling) == (
        "clear",
    )


def test_figures_stand_side_by_side_on_common_axes(days: dict[str, Judged], monkeypatch: pytest.MonkeyPatch):
    panels: dict[str, list[object]] = {}

    def keep(drawn: list[object], title: str, columns: int, limits: object, caption: str) -> str:
        panels[caption] = [columns, limits, *drawn]
        return title

    monkeypatch.setattr(module, "moment_figure", keep)
    shots = choose_excerpts(list(days.values()), seconds=1.0)
    drawn = {each.name: each for each in draw_excerpts(shots, FigureLimits(math.radians(45), max_images=5))}
    assert list(drawn) == [
        "scene", "laser-and-radar", "ranges-LaserHorizontal", "ranges-RadarRangeBearing",
        "line-VideoVisual", "values-VideoVisual",
    ]  # fmt: skip
    columns, limits, *ranges = panels[drawn["ranges-LaserHorizontal"].caption]
    assert columns == 3
    assert limits == panels[drawn["ranges-RadarRangeBearing"].caption][1]  # the same reach for all
    assert all(isinstance(each, RangePanel) for each in ranges)
    assert [each.lines for each in ranges] == [False] * 3 + [True] * 3
    share = [np.concatenate(each.masked).mean() for each in ranges[:3]]
    assert share[0] == 0.0
    assert 0.2 < share[1] < 1.0
    assert 0.0 < share[2] < 0.02
    kinds = [type(each) for each in panels[drawn["line-VideoVisual"].caption][2:]]
    assert kinds == [WaterfallPanel] * 3 + [ImagePanel] * 3
    one, several = panels[drawn["values-VideoVisual"].caption][2::3]
    assert isinstance(one, PixelRowPanel)
    assert isinstance(several, PixelRowPanel)
    assert (len(one.rgb), len(several.rgb)) == (1, 15)  # 15 images a second
    for name, caption in ((each.name, each.caption) for each in drawn.values()):
        assert "of SDI" in caption
        assert "dust at +" in caption or name == "scene"


def test_nothing_to_draw_is_an_error():
    recording = drive(4)
    shots = choose_excerpts([(recording, check(recording, checks=["T02"]))])
    with pytest.raises(StreamError, match="no laser, radar or camera"):
        next(draw_excerpts(shots, FigureLimits(1.0)))


def test_masked_returns_are_those_of_the_window_also_where_a_while_begins_within_it(days: dict[str, Judged]):
    recording, verdicts = days["dust"]
    laser = recording["LaserHorizontal"]
    [verdict] = [v for v in verdicts.by_stream[laser.name] if v.t0_ns == start_of(recording) + 4 * NS]
    assert verdict.region is not None
    begin = verdict.t0_ns + NS // 2
    moment = Moment(recording, "utc", begin, window=(begin, verdict.t1_ns))
    panel = mask_returns(show_ranges(moment, laser), moment.part(laser), [verdict])
    assert 10 < len(panel.masked) < len(verdict.region)
    for drawn, dropped in zip(panel.masked, verdict.region[-len(panel.masked) :], strict=True):
        assert np.array_equal(drawn, dropped[: len(drawn)])


def start_of(recording: Recording) -> int:
    return recording.spans()["utc"][0]


def test_a_radar_is_drawn_among_a_lasers_returns_as_seen_from_the_laser():
    """The wall of the yard is the same wall from both, though the mast is elsewhere."""
    both = Recording("both", (*yard().streams, radar()), frames=yard().frames)
    panel = show_ranges(Moment(both, "utc", START_NS + NS), both["laser"], both["radar"])
    assert panel.peer == "radar"
    assert panel.rings is not None
    assert len(panel.rings) > 10
    with pytest.raises(UsageError, match="cannot all be drawn"):
        show_ranges(Moment(both, "utc", START_NS + NS), both["laser"], both["radar"], both["laser"])


# Statements


def test_rain_is_alone_and_dust_is_not_on_a_simulated_day(days: dict[str, Judged]):
    outcomes = {o.statement.claim: o for o in judge_statements(list(days.values()))}
    first = outcomes["f_e(dust) > 10 f_e(rain)"]
    assert first.holds
    assert first.values["dust"] > 0.2
    assert outcomes["D(human) < 0.3"].sentence().endswith("not measured, no recording of human")
    assert outcomes["sigma_radar(dust) < 1.5 sigma_radar(clear)"].holds
    assert measure_effect(days["rain"][1], "LaserHorizontal", "RadarRangeBearing").isolated > 0.9


@pytest.mark.parametrize(
    ("number", "good", "bad"),
    [
        (0, {"dust": 0.4, "rain": 0.003}, {"dust": 0.4, "rain": 0.05}),
        (1, {"rain": 0.95, "smoke": 0.1}, {"rain": 0.95, "smoke": 0.3}),
        (2, {"dust": 0.95}, {"dust": 0.9}),
        (3, {"dust": 0.14, "clear": 0.1}, {"dust": 0.16, "clear": 0.1}),
        (4, {"human": 0.2}, {"human": 0.3}),
    ],
)
def test_a_statement_can_fail(number: int, good: dict[str, float], bad: dict[str, float]):
    assert STATEMENTS[number].holds(**good)
    assert not STATEMENTS[number].holds(**bad)


def test_without_a_clear_recording_the_radar_is_compared_with_its_own_clear_windows():
    dusty = ObscurantEffect(0.5, 0.1, 0.95, 0.14, 0.1, 20)
    assert STATEMENTS[3].values({"dust": dusty}) == {"dust": 0.14, "clear": 0.1}
    calm = replace(dusty, clear_m=0.2)
    assert STATEMENTS[3].values({"dust": dusty, "clear": calm}) == {"dust": 0.14, "clear": 0.2}
