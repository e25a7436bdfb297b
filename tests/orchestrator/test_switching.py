"""When a sensor is BAD another one stands in: decided causally, without flapping, kept with the reason."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from transect.base.clocks import NS
from transect.errors import ParseError
from transect.orchestrator import decide, load_policy
from transect.orchestrator.policy import Choice
from transect.orchestrator.switching import Switch, find_doubted, timelines_of
from transect.types import State, Verdict

CHOICES = (Choice("wheels first", ["wheels"]), Choice("camera then", ["camera"]))
MEMBERS = {"wheels": ["Odometry"], "camera": ["Left", "Right"]}
STATES: dict[str, State] = {"-": "OK", "!": "SUSPECT", "#": "BAD", ".": "UNKNOWN"}


def windows(stream: str, declared: str, raw: str = "") -> Sequence[Verdict]:
    """Verdicts of windows of a second, one for each letter."""
    return [
        Verdict(stream, stream, n * NS, (n + 1) * NS, state=STATES[a], raw=STATES[b], reason="SLIP")
        for n, (a, b) in enumerate(zip(declared, raw or declared, strict=True))
    ]


def switched(dwell: float = 3.0, **said: str) -> list[tuple[float, str]]:
    found = decide(CHOICES, MEMBERS, {name: windows(name, text) for name, text in said.items()}, dwell)
    return [(each.t_ns / NS, each.after) for each in found]


def test_a_verdict_acts_when_its_window_has_ended_and_not_before() -> None:
    assert switched(Odometry="----###----") == [(5.0, "camera then"), (8.0, "wheels first")]


def test_what_comes_later_changes_nothing_that_was_decided() -> None:
    whole = switched(Odometry="--##----####--")
    for end in range(1, 15):
        assert switched(Odometry="--##----####--"[:end]) == [each for each in whole if each[0] <= end]


def test_a_choice_holds_for_its_dwell_time() -> None:
    assert switched(dwell=3.0, Odometry="-#-#-#-#-#") == [(2.0, "camera then"), (5.0, "wheels first"),
                                                          (8.0, "camera then")]  # fmt: skip
    assert len(switched(dwell=0.0, Odometry="-#-#-#-#-#")) == 9


def test_one_of_two_cameras_is_enough_to_make_their_group_bad_and_suspect_is_not() -> None:
    assert switched(Odometry="--####", Left="--####", Right="------") == []
    assert switched(Odometry="--####", Left="--!!!!", Right="--....") == [(3.0, "camera then")]


def test_where_all_is_bad_it_stays_as_it_is() -> None:
    assert switched(Odometry="--########", Left="----######", Right="----######") == [(3.0, "camera then")]


def test_a_switch_knows_since_when_there_were_doubts_and_why() -> None:
    said = {"Odometry": windows("Odometry", "-----###---", "-!-!####---")}
    away, back = decide(CHOICES, MEMBERS, said, 3.0)
    assert (away.t_ns, away.since_ns) == (6 * NS, 3 * NS)
    assert away.because == ("Odometry is BAD (SLIP)",)
    assert back.since_ns == back.t_ns
    assert away.line(0) == (
        "from +6.0 s: wheels first -> camera then, because Odometry is BAD (SLIP), doubted since +3.0 s"
    )


def test_doubts_never_reach_back_behind_the_switch_before() -> None:
    said = {"Odometry": windows("Odometry", "-##------"), "Left": windows("Left", "-----####", "!!!!!####")}
    _, back = decide(CHOICES, MEMBERS, said, 0.0)
    assert (back.t_ns, back.since_ns) == (4 * NS, 4 * NS)


def test_timelines_tell_what_was_decided_and_what_was_doubted() -> None:
    names = {"a": "first", "b": "second"}
    assert timelines_of("a", [Switch(9, 7, "a", "b", ())], names) == ("first; 9 second", "first; 7 second")


def test_what_was_measured_shortly_before_the_doubts_is_taken_out_but_never_from_before_a_switch() -> None:
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
    pose, chart = policy.contest("pose"), policy.contest("map")
    assert policy.dwell == 5
    assert pose is not None
    assert [each.use for each in pose.choices] == ["A/B"]
    assert chart is not None
    assert [each.use for each in chart.choices] == ["laser", "radar"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dwell: -1", "cannot hold"),
        ("kinds: {map: {joined_by: X, parameter: y, choices: [], margin: -1}}", "cannot be -1 s"),
        ("kinds: {P: {joined_by: X, parameter: y, choices: [{use: A, reach: -1}]}}", "cannot reach -1 m"),
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


def left_out(**said: tuple[str, str]) -> list[tuple[str, float, float]]:
    """What is left out by declared and raw states; SUSPECT lacks half, BAD everything."""
    scores = {"OK": 1.0, "SUSPECT": 0.5, "BAD": 0.0, "UNKNOWN": None}
    judged = {
        name: [replace(each, score=scores[each.raw]) for each in windows(name, *texts)]
        for name, texts in said.items()
    }
    found = find_doubted({"wheels": ["Odometry"], "motion": ["Left", "Right"]}, judged)
    return [(each.what, each.t0_ns / NS, each.t1_ns / NS) for each in found]


def test_doubts_that_led_to_bad_are_left_out_with_the_window_beside_them() -> None:
    assert left_out(Odometry=("-----###---", "----###----")) == [("wheels", 3.0, 8.0)]
    assert left_out(Odometry=("-!!--!!----", "-!!--!!----")) == []


def test_of_two_that_are_doubted_at_once_the_better_one_stays() -> None:
    cameras = ("-------##--", "---!!!###--")
    found = left_out(Odometry=("--###------", "--####-----"), Left=cameras, Right=cameras)
    assert found == [("wheels", 1.0, 6.0), ("motion", 6.0, 10.0)]


def test_what_cannot_be_trusted_at_all_is_left_out_even_if_nothing_else_can() -> None:
    both = ("--###--", "--###--")
    assert left_out(Odometry=both, Left=both, Right=both)[0] == ("wheels", 2.0, 5.0)
