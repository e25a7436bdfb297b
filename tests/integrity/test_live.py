"""Checks while samples are pushed say what they say of the recording."""

from __future__ import annotations

from typing import Any

from tests.engine.flows import emitted, flow_of
from tests.integrity.recordings import START_NS, drive, hall

from transect.base.clocks import NS
from transect.engine.live import Live
from transect.integrity import check
from transect.integrity.live import Monitor, node_of
from transect.integrity.table import to_dict
from transect.recording import Recording
from transect.simulation.faults import inject
from transect.types import Imu, Verdict

NAMES = ["T01", "T02", "T05", "S01", "S03", "S04"]


def faulty() -> Recording:
    recording, _ = inject(drive(8), "stuck", 0.5, streams=["imu"])
    recording, _ = inject(recording, "dropout", 0.5, streams=["gps"])
    return recording.replace(streams=tuple(s for s in recording if not s.name.startswith("truth")))


def rows(verdicts: Any) -> list[dict[str, Any]]:
    found = [to_dict(v) for v in verdicts if v.t1_ns <= START_NS + 7 * NS]
    for row in found:  # only the name EARLY_STOP is hindsight: while it lasts a silence may be the end
        row["reason"] = row["reason"].replace("EARLY_STOP", "NO_DATA")
    return sorted(found, key=lambda row: (row["stream"], row["check"], row["t0_ns"]))


def test_a_monitor_gives_the_verdicts_of_a_replay() -> None:
    recording = faulty()
    monitor = Monitor({s.name: s.type for s in recording}, checks=NAMES)
    said: list[Verdict] = []
    for sample in recording.merge():
        said += monitor.push(sample.stream.name, sample.t_ns, sample.value)
    assert rows(said) == rows(check(recording, checks=NAMES))
    assert {v.reason for v in said if v.state == "BAD"} == {"STUCK", "GAP"}


def test_what_lasers_saw_at_first_is_remembered_from_window_to_window() -> None:
    recording, _ = inject(hall(seconds=8), "extrinsic_bump", 1.0, streams=["flat"], start="+4s")
    recording = recording.replace(streams=tuple(s for s in recording if not s.name.startswith("truth")))
    monitor = Monitor({s.name: s.type for s in recording}, checks=["X04"])
    said: list[Verdict] = []
    for sample in recording.merge():
        said += monitor.push(sample.stream.name, sample.t_ns, sample.value)
    assert rows(said) == rows(check(recording, checks=["X04"]))
    assert {v.stream for v in said if v.state == "BAD"} == {"flat"}


def test_a_check_is_a_node_with_typed_inputs_that_a_live_source_feeds() -> None:
    stream = faulty()["imu"]
    flow = flow_of({"stuck": node_of("stuck", {"stream": Imu})}, ["imu -> stuck.stream"])
    seen = emitted(flow, "stuck.out")
    live = Live(flow, capacity=10_000)
    for sample in stream:
        live.push("imu", sample.t_ns, sample.value)
    live.close()
    live.play()
    states = [verdict.state for _, verdict in seen]
    offline = check(Recording("one", (stream,)), checks=["S01"])
    assert states == offline.column("state")[: len(states)]
    assert "BAD" in states
    assert len(states) >= 7
