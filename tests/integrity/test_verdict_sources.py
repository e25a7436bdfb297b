"""Runs that act on verdicts: causal while they are played, the same on clean data, better on faulty data."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.commands import transect as command
from tests.integrity.recordings import START_NS, declaring, yard

import transect
from transect import formats
from transect.base.clocks import NS
from transect.engine import Run
from transect.errors import UsageError
from transect.integrity import VerdictTable, check
from transect.integrity.config import Config, Mute
from transect.integrity.verdict_sources import PlaybackVerdicts, RecordedVerdicts
from transect.recording import Recording, stream_of_values
from transect.simulation.faults import inject
from transect.types import Odometry

FILTER, MAPPING = "PoseFusion/ErrorStateFilter", "LaserMapping/NavStates"
DURATION_S = 15
TRUSTING = {"fusion.gate": False}


@cache
def clean() -> Recording:
    return declaring(DURATION_S)


@cache
def spiked() -> Recording:
    return inject(clean(), "gnss_spike", 1.0, streams=["gps"], start="+7s", end="+14s")[0]


@cache
def fused_with_checks() -> Run:
    """The day with spikes, fused without a gate of its own."""
    return transect.run(FILTER, spiked(), set=TRUSTING, check=True)


@cache
def walked() -> Recording:
    """A yard in which somebody walks before a robot that says that it stands."""
    return standing(yard(14, walker=True))


@cache
def dusty() -> Recording:
    return inject(walked(), "dust", 0.8, streams=["laser"], start="+5s", end="+13s")[0]


def standing(recording: Recording) -> Recording:
    """Return a recording with the odometry of a robot at rest."""
    t_ns = recording["laser"].t_ns
    still = {name: np.zeros(len(t_ns)) for name in ("vx", "vy", "vz", "wx", "wy", "wz")}
    rests = stream_of_values("odom", t_ns, still, type=Odometry, frame="odom", child="body")
    return recording.replace(streams=(*recording, rests))


def test_a_window_is_known_when_it_has_ended_and_as_a_check_of_the_whole_has_it() -> None:
    expected = {v.t1_ns: v for v in check(spiked()).by_stream["gps"]}
    played = PlaybackVerdicts(spiked(), ["gps", "odom"])
    assert played.known_at("gps", START_NS + NS - 1) is None
    for t_ns in (START_NS + NS, START_NS + 9 * NS + 5, START_NS + 12 * NS - 1, START_NS + 99 * NS):
        known = played.known_at("gps", t_ns)
        assert known is not None
        assert known.whole.t1_ns == max(t for t in expected if t <= t_ns)
        same = expected[known.whole.t1_ns]
        assert (known.whole.state, known.whole.score) == (same.state, same.score)
    assert played.known_at("imu", START_NS + 9 * NS) is None  # nobody asked for it


def test_a_mask_is_handed_out_with_its_sample_and_is_that_of_its_window() -> None:
    laser = dusty()["laser"]
    regions = [v for v in check(dusty(), checks=["C02", "C03"]).by_stream["laser"] if v.region is not None]
    played = PlaybackVerdicts(dusty(), ["laser"])
    window = regions[len(regions) // 2]
    rows = np.flatnonzero((laser.t_ns >= window.t0_ns) & (laser.t_ns < window.t1_ns))
    assert window.region is not None
    assert window.region.any()
    for row, expected in zip(rows.tolist(), window.region, strict=True):
        mask = played.mask_of("laser", row)
        assert mask is not None
        assert (mask >= expected).all()  # other checks may mask more


def test_what_a_run_does_at_a_time_does_not_depend_on_what_comes_later() -> None:
    part = transect.run(FILTER, spiked(), set=TRUSTING, check=True, end="+11s")["pose"]
    whole = fused_with_checks()["pose"]
    count = len(part) - 1
    assert count > 10
    for now, then in zip(part.values[:count], whole.values[:count], strict=True):
        assert (now.position == then.position).all()


def test_a_clean_drive_is_fused_to_the_same_bits() -> None:
    plain = transect.run(FILTER, clean()).digest
    assert transect.run(FILTER, clean(), check=True).digest == plain
    assert transect.run(FILTER, clean(), verdicts=check(clean())).digest == plain
    short = clean().slice(None, "+8s")
    smooth = [transect.run("PoseFusion/FixedLagSmoother", short, check=how).digest for how in (False, True)]
    assert smooth[0] == smooth[1]


def test_a_clean_yard_is_mapped_to_the_same_bits() -> None:
    plain, checked = (transect.run(MAPPING, standing(yard(8)), check=how) for how in (False, True))
    assert checked.digest == plain.digest
    assert "score" not in checked["map"].values[0].fields


def _error(run: Run) -> float:
    """RMS distance from the straight way north, m; the first pose is at the origin."""
    return float(np.sqrt(np.mean([p.position[0] ** 2 for p in run["pose"].values])))


def test_spikes_are_masked_at_once_so_that_a_fusion_without_a_gate_withstands_them() -> None:
    usual = _error(transect.run(FILTER, clean(), set=TRUSTING))
    acting = fused_with_checks()
    assert _error(transect.run(FILTER, spiked(), set=TRUSTING)) > 10 * usual
    assert _error(acting) < 1.5 * usual
    (said,) = (each.text for each in acting.conclusions if each.node == "integrity")
    assert said.startswith("gps: ")
    assert "dropped" in said
    assert transect.run(FILTER, spiked(), set=TRUSTING, check=True, jobs=2).digest == acting.digest


def test_slipping_wheels_count_for_less_while_they_slip() -> None:
    recording, _ = inject(clean(), "wheel_slip", 1.0, streams=["odom"], start="+8s", end="+14s")
    run = transect.run(FILTER, recording, check=True)
    said = next(each.text for each in run.conclusions if each.text.startswith("fusion.odometry (odom): "))
    begin, end = (float(number) for number in re.findall(r"\+([\d.]+) s", said))
    assert 8 < begin < 12 < end <= DURATION_S
    assert said.endswith("(SLIP)")


def test_dust_is_kept_out_of_a_map_and_a_person_is_not() -> None:
    plain, acting = (transect.run(MAPPING, dusty(), check=how) for how in (False, True))
    seen, dust, left = (_cells(each) for each in (transect.run(MAPPING, walked()), plain, acting))
    near = {(x + i, y + j) for x, y in seen for i in (-1, 0, 1) for j in (-1, 0, 1)}
    assert len(dust - near) > 100
    assert len(left - near) < 0.3 * len(dust - near)
    person = {(x, y) for x, y in seen & dust if 18 <= x <= 20}  # 4 m ahead
    assert len(person) > 10
    assert len(person - left) <= 0.1 * len(person)
    scores = acting["map"].values[0].fields["score"]
    assert 0 <= scores.min() < scores.max() == 1


def _cells(run: Run) -> set[tuple[int, int]]:
    cells = np.floor(run["map"].values[0].points[:, :2] / 0.2).astype(int)
    return {(int(x), int(y)) for x, y in cells}


def test_muted_verdicts_do_not_act() -> None:
    muted = Config(mute=[Mute("known", checks=name) for name in ("E01", "E03", "S03")])
    played = PlaybackVerdicts(spiked(), ["gps"], muted)
    known = played.known_at("gps", START_NS + 12 * NS)
    assert known is not None
    assert known.whole.score == 1.0
    assert not any(played.mask_of("gps", row) is not None for row in range(len(spiked()["gps"])))


def test_hindsight_has_the_verdict_of_the_samples_own_window_and_says_so() -> None:
    table = check(spiked())
    hindsight = RecordedVerdicts(table, spiked(), ["gps"])
    known = hindsight.known_at("gps", START_NS + 9 * NS)
    assert known is not None
    assert known.whole.t0_ns == START_NS + 9 * NS
    run = transect.run("LocalPose", spiked(), verdicts=table)
    assert run.config["verdicts"] == {"hindsight": True}
    assert run.conclusions[-1].text == "hindsight: the verdicts were made with later data"
    masked = [row for row in range(len(spiked()["gps"])) if hindsight.mask_of("gps", row) is not None]
    late = spiked().slice("+8.5s", None)  # its first window is cut
    shift = len(spiked()["gps"]) - len(late["gps"])
    part = RecordedVerdicts(table, late, ["gps"])
    assert sum(row >= shift for row in masked) > 5
    for row in masked:
        if row >= shift:
            assert part.mask_of("gps", row - shift) == hindsight.mask_of("gps", row)


def test_verdicts_on_something_else_are_refused() -> None:
    fixes = clean().slice("+12s", None)
    with pytest.raises(UsageError, match="on none of the streams"):
        RecordedVerdicts(check(yard(3)), clean(), ["gps"])
    with pytest.raises(UsageError, match="of another time"):
        RecordedVerdicts(check(clean().slice(None, "+3s")), fixes, ["gps"])
    with pytest.raises(UsageError, match="not both"):
        transect.run(FILTER, clean(), check=True, verdicts=check(yard(3)))


def test_the_command_checks_in_the_same_pass_and_keeps_the_verdicts(tmp_path: Path) -> None:
    formats.write(spiked(), tmp_path / "day", format="parquet")
    done = command("run", "LocalPose", tmp_path / "day", "--check", "-o", tmp_path / "a")
    assert done.returncode == 4, done.stderr  # of a receiver without an attitude there are no poses
    assert "gps: " in done.stdout
    kept = VerdictTable.read(tmp_path / "a" / "verdicts.parquet")
    assert kept.csv() == check(transect.open(tmp_path / "day")).select(stream="gps").csv()
    file = tmp_path / "a" / "verdicts.parquet"
    again = command("run", "LocalPose", tmp_path / "day", "--verdicts", file, "--json")
    document = json.loads(again.stdout)
    assert document["verdicts"]["hindsight"] is True
    assert len(document["verdicts"]["sha256"]) == 64
