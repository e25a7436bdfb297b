"""What a check, a configuration and a session must be, and what is said where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from transect.base.clocks import NS
from transect.errors import ParseError, UsageError
from transect.integrity import Config, check, runner
from transect.integrity.catalogue import load
from transect.integrity.checks.missing_samples import SampleGap
from transect.integrity.config import load_config, read_config
from transect.integrity.model import Check, CheckError, Finding, Limit
from transect.integrity.report import time_text
from transect.integrity.windows import Window
from transect.types import Imu

from .recordings import drive, yard


def test_a_check_of_an_unknown_group_is_refused() -> None:
    with pytest.raises(CheckError, match="unknown group 'smell'"):

        class _(Check, id="U02", group="smell"):  # pyright: ignore[reportGeneralTypeIssues, reportArgumentType]
            size = Limit(1.0, 2.0, "NOISE")


def test_a_check_must_take_windows_the_judged_one_first() -> None:
    with pytest.raises(CheckError, match="takes no window"):

        class _Blind(Check, id="U03"):  # pyright: ignore[reportUnusedClass]
            def evaluate(self) -> Finding:
                return Finding({}, 0)

    with pytest.raises(CheckError, match="number is no input") as caught:

        class _Counting(Check, id="U04"):  # pyright: ignore[reportUnusedClass]
            def evaluate(self, number: int) -> Finding:
                return Finding({}, number)

    assert "laser: Window[LaserScan], then radars" in caught.value.hint
    with pytest.raises(CheckError, match="other is no input"):  # peers are several, or none

        class _Pair(Check, id="U05"):  # pyright: ignore[reportUnusedClass]
            def evaluate(self, imu: Window[Imu], other: Window[Imu]) -> Finding:
                return Finding({}, len(imu) + len(other))


def test_names_that_nothing_has_are_refused_with_the_nearest_one() -> None:
    with pytest.raises(CheckError, match="no limit 'ration'") as caught:
        SampleGap({"ration": (1.0, 2.0)})
    assert "ratio" in caught.value.hint
    with pytest.raises(CheckError, match="no check 'gapp'") as caught:
        load("gapp")
    assert "gap" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("window: 0", "window should be more than 0 s"),
        ("checks: {gap: {limits: {ratio: [3]}}}", "ratio should be \\[warn, fail\\]"),
        ("checks: {gap: {limits: {ratio: [3, 10, 20]}}}", "ratio should be \\[warn, fail\\]"),
        ("conditions: {night: {streams: {'*': {checks: {gapp: {}}}}}}", "'gapp'"),
    ],
)
def test_what_is_wrong_with_a_configuration_is_named(text: str, word: str) -> None:
    with pytest.raises(ParseError, match=word):
        read_config(text, "robot.yaml")


def test_a_configuration_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "robot.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ParseError, match="is not text"):
        load_config(tmp_path / "robot.yaml")
    assert read_config("", "robot.yaml") == Config()


def test_a_reference_without_a_stream_of_the_recording_is_refused() -> None:
    with pytest.raises(UsageError, match="no stream of the same name") as caught:
        check(drive(3), checks=["C01"], reference=yard(1))
    assert "laser" in caught.value.hint


def test_windows_are_longer_where_they_would_be_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MAX_WINDOWS", 10)
    verdicts = check(drive(40), checks=["T05"])
    imu = verdicts.select(stream="imu")
    assert 5 <= len(imu) <= 10
    lengths = {t1 - t0 for t0, t1 in zip(imu.column("t0_ns"), imu.column("t1_ns"), strict=True)}
    assert max(lengths) == 4 * NS


def test_the_share_that_is_done_grows_and_is_told_now_and_then() -> None:
    told: list[float] = []
    check(drive(60), read_config("window: 0.1", "robot.yaml"), checks=["T05"], on_window=told.append)
    assert told == sorted(told)
    assert len(told) == 600 // 256
    assert all(abs(share - (k + 1) * 256 / 600) < 0.01 for k, share in enumerate(told))


@pytest.mark.parametrize(("seconds", "text"), [(12, "+12 s"), (185, "+3:05"), (3723, "+1:02:03")])
def test_times_are_written_as_a_person_reads_them(seconds: int, text: str) -> None:
    assert time_text(seconds * NS) == text


def test_fields_of_settings_are_parameters_of_a_check() -> None:
    check = load("gap")(recent_intervals=20)
    assert check.settings.recent_intervals == 20  # type: ignore[attr-defined]
    assert load("gap").settings.recent_intervals == 10  # type: ignore[attr-defined]
    read_config("checks: {gap: {params: {min_lossy_intervals: 1.8}}}", "robot.yaml")
    with pytest.raises(UsageError, match="recent_interval"):
        load("gap")(recent_interval=20)
