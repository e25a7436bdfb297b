"""A BAD sensor is replaced by another one: decided causally, without rapid switching, with the reason."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from transect.base.clocks import NS
from transect.errors import ParseError
from transect.orchestrator import decide_switches, load_policy
from transect.orchestrator.policy import Alternative
from transect.orchestrator.switches import Switch, find_suspect_spans, timelines_of
from transect.types import State, Verdict

CHOICES = (Alternative("wheels first", ["wheels"]), Alternative("camera then", ["camera"]))
MEMBERS = {"wheels": ["Odometry"], "camera": ["Left", "Right"]}
STATES: dict[str, State] = {"-": "OK", "!": "SUSPECT", "#": "BAD", ".": "UNKNOWN"}


def windows(stream: str, declared: str, raw: str = "") -> Sequence[Verdict]:
    """Verdicts of windows of a second, one for each letter."""
    return [
        Verdict(stream, stream, n * NS, (n + 1) * NS, state=STATES[a], raw=STATES[b], reason="SLIP")
        for n, (a, b) in enumerate(zip(declared, raw or declared, strict=True))
    ]


def switched(dwell: float = 3.0, **said: str) -> list[tuple[float, str]]:
    found = decide_switches(
        CHOICES, MEMBERS, {name: windows(name, text) for name, text in said.items()}, dwell
    )
    return [(each.t_ns / NS, each.after) for each in found]


def test_a_verdict_acts_when_its_window_has_ended_and_not_before() -> None:
    assert switched(Odometry="----###----") == [(5.0, "camera then"), (8.0, "wheels first")]


def test_what_comes_later_changes_nothing_that_was_decided() -> None:
    whole = switched(Odometry="--##----####--")
    for end in range(1, 15):
        assert switched(Odometry="--##----####--"[:end]) == [each for each in whole if each[0] <= end]


def test_a_choice_is_kept_for_its_dwell_time() -> None:
    assert switched(dwell=3.0, Odometry="-#-#-#-#-#") == [(2.0, "camera then"), (5.0, "wheels first"),
                                                          (8.0, "camera then")]  # fmt: skip
    assert len(switched(dwell=0.0, Odometry="-#-#-#-#-#")) == 9


def test_one_of_two_cameras_is_enough_to_make_their_group_bad_and_suspect_is_not() -> None:
    assert switched(Odometry="--####", Left="--####", Right="------") == []
    assert switched(Odometry="--####", Left="--!!!!", Right="--....") == [(3.0, "camera then")]


def test_if_all_are_bad_nothing_changes() -> None:
    assert switched(Odometry="--########", Left="----######", Right="----######") == [(3.0, "camera then")]


def test_a_switch_states_since_when_its_sensor_was_suspect_and_why() -> None:
    said = {"Odometry": windows("Odometry", "-----###---", "-!-!####---")}
    away, back = decide_switches(CHOICES, MEMBERS, said, 3.0)
    assert (away.t_ns, away.since_ns) == (6 * NS, 3 * NS)
    assert away.because == ("Odometry is BAD (SLIP)",)
    assert back.since_ns == back.t_ns
    assert away.describe(0) == (
        "from +6.0 s: wheels first -> camera then, because Odometry is BAD (SLIP), suspect since +3.0 s"
    )


def test_suspect_spans_never_begin_before_the_previous_switch() -> None:
    said = {"Odometry": windows("Odometry", "-##------"), "Left": windows("Left", "-----####", "!!!!!####")}
    _, back = decide_switches(CHOICES, MEMBERS, said, 0.0)
    assert (back.t_ns, back.since_ns) == (4 * NS, 4 * NS)


def test_timelines_have_the_times_of_decision_and_of_suspicion() -> None:
    names = {"a": "first", "b": "second"}
    assert timelines_of("a", [Switch(9, 7, "a", "b", ())], names) == ("first; 9 second", "first; 7 second")


def test_the_margin_before_suspect_windows_is_removed_but_never_before_a_switch() -> None:
    names = {"a": "a", "b": "b"}
    switches = [Switch(9 * NS, 7 * NS, "a", "b", ()), Switch(20 * NS, 20 * NS, "b", "a", ()),
                Switch(23 * NS, 21 * NS, "a", "b", ())]  # fmt: skip
    decided, revised = timelines_of("a", switches, names, 3.0)
    assert decided == f"a; {9 * NS} b; {20 * NS} a; {23 * NS} b"
    assert revised == f"a; {4 * NS} b; {20 * NS} a; {20 * NS} b"


def test_a_policy_of_ones_own_replaces_a_kind_and_keeps_the_others(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "dwell: 5\nkinds:\n  Pose:\n    joined_by: PoseSwitching\n    parameter: switch.use\n"
        "    choices: [{use: A/B, unless: [camera]}]\n"
    )
    policy = load_policy(own)
    pose, chart = policy.rule_for("pose"), policy.rule_for("map")
    assert policy.dwell == 5
    assert pose is not None
    assert [each.use for each in pose.choices] == ["A/B"]
    assert chart is not None
    assert [each.use for each in chart.choices] == ["laser", "radar"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dwell: -1", "cannot be -1 s"),
        ("kinds: {map: {joined_by: X, parameter: y, choices: [], margin: -1}}", "cannot be -1 s"),
        ("kinds: {P: {joined_by: X, parameter: y, choices: [{use: A, map_radius: -1}]}}", "cannot be -1 m"),
        ("dwell: soon", "own.yaml:1"),
        ("[1]", "the policy"),
        ("kinds: {Pose: {joined_by: X, parameter: y, choices: [{use: A, unless: [sonar]}]}}", "sonar"),
        ("kinds: {Pose: {choices: []}}", "joined_by"),
    ],
)
def test_what_is_wrong_with_a_policy_is_said(tmp_path: Path, text: str, said: str) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(text)
    with pytest.raises(ParseError, match=said):
        load_policy(own)


def suspect(**said: tuple[str, str]) -> list[tuple[str, float, float]]:
    """Suspect spans by declared and raw states; the distrust of SUSPECT is 0.5, that of BAD 1."""
    scores = {"OK": 1.0, "SUSPECT": 0.5, "BAD": 0.0, "UNKNOWN": None}
    judged = {
        name: [replace(each, score=scores[each.raw]) for each in windows(name, *texts)]
        for name, texts in said.items()
    }
    found = find_suspect_spans({"wheels": ["Odometry"], "motion": ["Left", "Right"]}, judged)
    return [(each.what, each.t0_ns / NS, each.t1_ns / NS) for each in found]


def test_suspect_windows_that_led_to_bad_are_listed_with_the_adjacent_ones() -> None:
    assert suspect(Odometry=("-----###---", "----###----")) == [("wheels", 3.0, 8.0)]
    assert suspect(Odometry=("-!!--!!----", "-!!--!!----")) == []


def test_of_two_suspect_sensors_the_better_one_is_kept() -> None:
    cameras = ("-------##--", "---!!!###--")
    found = suspect(Odometry=("--###------", "--####-----"), Left=cameras, Right=cameras)
    assert found == [("wheels", 1.0, 6.0), ("motion", 6.0, 10.0)]


def test_a_fully_distrusted_sensor_is_listed_even_if_all_others_are() -> None:
    both = ("--###--", "--###--")
    assert suspect(Odometry=both, Left=both, Right=both)[0] == ("wheels", 2.0, 5.0)
