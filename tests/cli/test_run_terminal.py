"""`transect run --step`: what a person types at the prompt, and what comes of it."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

import pytest
from click.testing import Result

import transect

from .run_sample import START_NS, document, run, write_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("project"))


def typed(project: Path, *lines: str, compound: str = "track", options: tuple[object, ...] = ()) -> Result:
    text = "".join(f"{line}\n" for line in lines)
    return run(project / f"{compound}.yaml", project / "day", "--step", *options, input=text)


def said(project: Path, *lines: str, compound: str = "track") -> list[str]:
    """Return what is printed between the wiring and the outputs."""
    shown = typed(project, *lines, compound=compound).stdout.splitlines()
    begin = next(k for k, line in enumerate(shown) if line.endswith("h for help"))
    end = next(k for k, line in enumerate(shown) if line.startswith("output "))
    return shown[begin + 1 : end]


def test_nothing_is_played_by_itself(project: Path, tmp_path: Path):
    done = typed(project, "q", options=("-o", tmp_path / "run"))
    assert "before the first sample; press Enter to step, p to play, h for help" in done.stdout
    assert done.return_value == 0
    assert "stopped: before the first sample; partial outputs are kept" in done.stderr
    content = json.loads((tmp_path / "run.interrupted" / "run.json").read_text())
    assert content["status"] == "interrupted"
    assert content["outputs"]["yaw"]["samples"] == 0


def test_enter_plays_one_wave_and_shows_what_was_emitted(project: Path):
    shown = said(project, "", "s 2")
    assert shown[0] == "2020-09-13T12:26:40.000 (+0.000 s): paused"
    assert [line.partition(":")[0].strip() for line in shown[1:3]] == ["imu", "heading.out"]
    assert shown[3] == "2020-09-13T12:26:40.010 (+0.010 s): paused"
    assert "  twist: Twist(" in "\n".join(shown)


def test_played_to_the_end_it_is_the_same_run(project: Path, tmp_path: Path):
    done = typed(
        project, "s 7", "t +0.5s", "b pose", "p", "b pose", "p", "q", options=("-o", tmp_path / "run")
    )
    assert done.return_value == 0
    content = json.loads((tmp_path / "run" / "run.json").read_text())
    assert content["status"] == "complete"
    assert content["digest"] == document(project / "track.yaml", project / "day")["digest"]


@pytest.mark.parametrize("word", ["p", "play", "PLAY"])
def test_play_goes_to_the_end_after_which_one_can_still_look(project: Path, word: str):
    shown = said(project, word, "w", "v yaw", "p")
    assert shown[0] == "2020-09-13T12:26:41.990 (+1.990 s): end"
    assert "2020-09-13T12:26:41.990 (+1.990 s), 220 steps" in shown
    assert shown[-1] == shown[0]


def test_until_a_time_it_plays_what_comes_before(project: Path):
    shown = said(project, "t +0.5s", "w", "t +0.2s", "t 12:26:41", "t noon")
    assert shown[0] == "2020-09-13T12:26:40.490 (+0.490 s): break: time"
    assert "  imu: 50 of 200 samples" in shown
    assert "  heading: 50 calls" in shown
    assert "  track: 5 calls" in shown
    assert "2020-09-13T12:26:40.200 has passed: 2020-09-13T12:26:40.490 (+0.490 s)" in shown
    assert "2020-09-13T12:26:40.990 (+0.990 s): break: time" in shown
    assert "cannot read 'noon' as a time" in shown


def test_a_break_at_a_port_holds_until_it_is_taken_back(project: Path):
    shown = said(project, "b pose", "b", "p", "s 100", "b track.out", "b", "s 3")
    assert shown[:2] == ["breakpoint on track.out", "breakpoints: track.out"]
    stops = [line for line in shown if line.startswith("2020")]
    assert stops == [
        "2020-09-13T12:26:40.003 (+0.003 s): break: track.out",
        "2020-09-13T12:26:40.103 (+0.103 s): break: track.out",
        "2020-09-13T12:26:40.130 (+0.130 s): paused",
    ]
    assert "no breakpoint on track.out" in shown
    assert "breakpoints: none" in shown


def test_a_break_at_an_input_can_be_set_in_the_middle(project: Path):
    shown = said(project, "s 5", "b twist", "p")
    assert shown[-5].endswith("(+0.103 s): break: twist")


def test_the_newest_value_of_a_port_is_shown(project: Path):
    shown = said(project, "v yaw", "s", "v yaw", "v imu", "v", "v heading.oot")
    assert shown[0] == "heading.out has no output yet"
    assert any(line.startswith("2020-09-13T12:26:40.000 heading.out: ") for line in shown)
    assert any(line.startswith("2020-09-13T12:26:40.000 imu: Imu(acceleration=") for line in shown)
    assert "ports: imu, twist, heading.out, track.out, yaw, pose" in shown
    assert shown[-1] == "there is no port 'heading.oot'; did you mean 'heading.out'?"


def test_an_unknown_port_has_no_breakpoint(project: Path):
    shown = said(project, "b heading.oot", "b", "p")
    assert shown[:2] == ["there is no port 'heading.oot'; did you mean 'heading.out'?", "breakpoints: none"]
    assert shown[2].endswith(": end")


def test_in_a_thread_which_cannot_catch_ctrl_c_a_run_is_the_same(project: Path):
    before, shown = signal.getsignal(signal.SIGINT), list[Result]()
    thread = threading.Thread(target=lambda: shown.append(run(project / "track.yaml", project / "day")))
    thread.start()
    thread.join()
    digest = document(project / "track.yaml", project / "day")["digest"]
    assert f"digest {digest}\n" in shown[0].stdout
    assert signal.getsignal(signal.SIGINT) is before


def test_help_lists_every_command(project: Path):
    shown = said(project, "h")
    assert [line[:1] for line in shown] == list("Esptbvwqh")


@pytest.mark.parametrize(
    ("line", "answer"),
    [("x", "there is no command 'x'; h lists all"), ("s -1", "s -1: not a number of steps, such as s 10")],
)
def test_what_cannot_be_understood_is_said_and_changes_nothing(project: Path, line: str, answer: str):
    shown = said(project, line, "w")
    assert shown[:2] == [answer, "before the first sample, 0 steps"]


def test_a_node_that_fails_is_said_at_once_and_in_the_end(project: Path):
    done = typed(project, "s 15", compound="broken")
    assert "error: the node 'fails' (Fails) failed: ValueError: lost the horizon" in done.stdout
    assert done.return_value is None
    assert str(done.exception).startswith("the node 'fails' (Fails) failed")


def test_ctrl_c_pauses_what_plays(project: Path):
    shown = said(project, "p", "w", "p", compound="presses")
    assert shown[0] == "2020-09-13T12:26:40.490 (+0.490 s): paused"
    assert shown[-4] == "2020-09-13T12:26:41.990 (+1.990 s): end"


def test_ctrl_c_at_the_prompt_leaves_with_130_and_keeps_what_there_is(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lines = iter(["s 30"])

    def ask(prompt: str) -> str:
        for line in lines:
            return line
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", ask)
    done = typed(project, options=("-o", tmp_path / "run"))
    assert done.return_value == 130
    assert "interrupted: 2020-09-13T12:26:40.260" in done.stderr
    yaw = transect.open(tmp_path / "run.interrupted" / "yaw.parquet").streams[0]
    assert (len(yaw), yaw.t_ns[0]) == (27, START_NS)
