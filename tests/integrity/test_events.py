"""What several sensors noticed at one time is told once, from when it began to when it ended."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.base.clocks import NS
from transect.integrity import VerdictTable, check
from transect.integrity.events import cause_of, find_events
from transect.integrity.report import report_sensors
from transect.integrity.rules import declare
from transect.integrity.table import table_of
from transect.recording import Recording
from transect.simulation.faults import inject
from transect.types import State, Verdict

from .recordings import radar, yard

GROUPS = {"C02": "content", "C06": "content", "C10": "content", "T02": "timing"}


def judge(
    sensor: str, check: str, raws: list[State], reason: str, k_on: int = 2, k_off: int = 3
) -> list[Verdict]:
    """Return verdicts on windows of a second, declared as checks declare them."""
    states = declare(raws, k_on, k_off)
    found: list[Verdict] = []
    for k, (raw, state) in enumerate(zip(raws, states, strict=True)):
        said = reason if "BAD" in (raw, state) or raw == "SUSPECT" else ""
        score = {"OK": 1.0, "SUSPECT": 0.3, "BAD": 0.0}.get(raw)
        found.append(Verdict(sensor, sensor, k * NS, (k + 1) * NS, check, 1, state, raw, score, said))
    return found


def table(*verdicts: list[Verdict]) -> VerdictTable:
    return VerdictTable(table_of([each for some in verdicts for each in some], GROUPS))


def states(bad: range, length: int = 40) -> list[State]:
    return ["BAD" if k in bad else "OK" for k in range(length)]


def sentences(verdicts: VerdictTable) -> list[str]:
    return [event.sentence(0) for event in find_events(report_sensors(verdicts), verdicts)]


def test_a_problem_is_told_from_when_it_began_and_not_from_when_it_was_declared():
    verdicts = table(judge("laser", "C02", states(range(12, 32)), "OBSCURANT"))
    assert [v.state for v in verdicts][12] == "SUSPECT"  # not yet declared
    assert [v.state for v in verdicts][33] == "BAD"  # not yet cleared
    [report] = report_sensors(verdicts)
    assert report.problems[0].spans == ((12 * NS, 32 * NS),)
    assert report.problems[0].seconds == 20
    assert "+12 s to +32 s" in report.problems[0].sentence(0)


@given(
    st.lists(st.sampled_from(["OK", "SUSPECT", "BAD", "UNKNOWN"]), min_size=1, max_size=30), st.integers(1, 3)
)
def test_every_declared_stretch_is_told_and_begins_and_ends_with_an_anomaly(raws: list[State], k: int):
    verdicts = judge("laser", "C02", raws, "OBSCURANT", k, k)
    problems = report_sensors(table(verdicts))[0].problems
    assert bool(problems) == any(raw in ("SUSPECT", "BAD") for raw in raws)
    for start, end in (span for problem in problems for span in problem.spans):
        assert raws[start // NS] in ("SUSPECT", "BAD")
        assert raws[end // NS - 1] in ("SUSPECT", "BAD")
        assert problems[0].state in [v.state for v in verdicts[start // NS : end // NS]]


def test_lasers_that_see_a_cloud_and_a_radar_that_does_not_are_one_sentence():
    verdicts = table(
        judge("port", "C02", states(range(12, 32)), "OBSCURANT"),
        judge("starboard", "C02", states(range(14, 31)), "OBSCURANT"),
        judge("camera", "C10", ["SUSPECT" if 15 <= k < 30 else "OK" for k in range(40)], "HAZE"),
        judge("radar", "C06", states(range(0)), "NOISE"),
        judge("gyro", "T02", states(range(0)), "GAP"),
    )
    [said] = sentences(verdicts)
    assert said.startswith("A cloud from +12 s to +32 s: seen by port and starboard, a little by camera;")
    assert said.endswith("; radar did not see it: use it there.")


@pytest.mark.parametrize(("suspect", "clear"), [(3, True), (9, False)])
def test_a_radar_that_is_noisier_now_and_then_can_still_be_used(suspect: int, clear: bool):
    noisy: list[State] = ["SUSPECT" if k in range(12, 12 + suspect) else "OK" for k in range(40)]
    verdicts = table(
        judge("port", "C02", states(range(12, 32)), "OBSCURANT"),
        judge("starboard", "C02", states(range(12, 32)), "OBSCURANT"),
        judge("radar", "C06", noisy, "NOISE"),
    )
    assert ("radar did not see it: use it there" in sentences(verdicts)[0]) == clear


def test_who_could_not_tell_is_not_said_to_have_seen_nothing():
    unsure: list[State] = ["UNKNOWN" if k == 20 else "OK" for k in range(40)]
    verdicts = table(
        judge("port", "C02", states(range(12, 32)), "OBSCURANT"),
        judge("starboard", "C02", states(range(12, 32)), "OBSCURANT"),
        judge("radar", "C06", unsure, "NOISE"),
    )
    assert sentences(verdicts) == ["A cloud from +12 s to +32 s: seen by port and starboard."]


def test_two_clouds_with_a_pause_are_two_events_and_other_reasons_are_not_mixed():
    twice: list[State] = ["BAD" if 5 <= k < 9 or 25 <= k < 30 else "OK" for k in range(40)]
    verdicts = table(
        judge("port", "C02", twice, "OBSCURANT"), judge("starboard", "C02", twice, "SMOKE"),
        judge("left", "T02", states(range(6, 8)), "GAP"), judge("right", "T02", states(range(6, 9)), "GAP"),
        judge("odometry", "T02", states(range(20, 24)), "RATE"),
    )  # fmt: skip
    assert sentences(verdicts) == [
        "A cloud from +25 s to +30 s: seen by port and starboard.",
        "A cloud from +5 s to +9 s: seen by port and starboard.",
        "Each of left and right lost samples from +6 s to +9 s.",
    ]


@pytest.mark.parametrize("reason", ["DUST", "SMOKE", "HAZE", "OBSCURANT"])
def test_all_that_a_cloud_does_is_one_cause(reason: str):
    assert cause_of(reason) == "OBSCURANT"
    assert cause_of("GAP") == "GAP"


@pytest.mark.parametrize(
    ("fault", "said"), [("dust", "A cloud from +1"), ("rain", "Rain from +10 s to +20 s")]
)
def test_a_laser_in_dust_and_in_rain_beside_a_radar(fault: str, said: str):
    air = inject(yard(), fault, severity=0.6, seed=1, start="+10s", end="+20s")[0]
    both = Recording("air", (*air.streams, radar()), frames=air.frames)
    verdicts = check(both, checks=["C02", "C03", "C06"])
    [event] = find_events(report_sensors(verdicts), verdicts)
    assert event.sentence(int(min(verdicts.column("t0_ns")))).startswith(said)
    assert event.unharmed == ("radar",)
    begin = np.datetime64(event.t0_ns, "ns") - np.datetime64(int(both["laser"].t_ns[0]), "ns")
    assert np.timedelta64(10, "s") <= begin <= np.timedelta64(11, "s")
