"""Slip, satellite fixes, declared uncertainties, and mistakes of descriptions."""

from __future__ import annotations

import pytest

from transect.base.clocks import NS
from transect.integrity import VerdictTable, check
from transect.recording import Recording
from transect.simulation.faults import inject

from .recordings import START_NS, declaring, drive

NUMBERS = ["X05", "E03"]


def test_clean_drives_are_ok_and_no_check_fails() -> None:
    for recording in (drive(), declaring()):
        verdicts = check(recording, checks=NUMBERS)
        assert verdicts.select(raw=("BAD", "SUSPECT")).column("check") == []
        assert verdicts.select(reason="CHECK_FAILED").column("note") == []
        assert set(verdicts.select(raw="OK").column("check")) == set(NUMBERS)


def declared(recording: Recording, fault: str, severity: float, stream: str, number: str) -> VerdictTable:
    changed, _ = inject(recording, fault, severity, seed=1, streams=[stream], start="+22s", end="+32s")
    found = check(changed, checks=[number]).select(raw=("BAD", "SUSPECT"))
    assert set(found.column("stream")) == {stream}
    assert min(found.column("t1_ns")) > START_NS + 22 * NS
    assert max(found.column("t0_ns")) < START_NS + 36 * NS
    return found


@pytest.mark.parametrize(
    ("fault", "severity", "stream", "number", "reason", "state"),
    [
        ("wheel_slip", 0.5, "odom", "X05", "SLIP", "SUSPECT"),
        ("wheel_slip", 0.9, "odom", "X05", "SLIP", "BAD"),
        ("gnss_spike", 1.0, "gps", "E03", "NIS", "BAD"),
        ("gnss_float", 1.0, "gps", "E03", "FIX_LOST", "SUSPECT"),
    ],
)
def test_a_fault_is_named(
    fault: str, severity: float, stream: str, number: str, reason: str, state: str
) -> None:
    found = declared(declaring(), fault, severity, stream, number)
    assert set(found.column("reason")) == {reason}
    assert state in found.column("state")
