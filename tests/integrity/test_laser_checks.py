"""Early returns of a laser: clouds, drops, objects, and what cannot be told."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest

from transect.errors import UsageError
from transect.integrity import check
from transect.integrity.lasers.returns import grow_mask
from transect.integrity.report import report_sensors
from transect.recording import Recording, stream_of_values
from transect.simulation.faults import inject
from transect.types import LaserScan, Odometry, RadarRange, RigidBodyState, Verdict

from .recordings import START_NS, hedges, lane, radar, yard

CONTENT = ("C01", "C02", "C03")


def judge(recording: Recording) -> dict[str, list[Verdict]]:
    verdicts = list(check(recording, checks=CONTENT))
    return {each: [v for v in verdicts if v.check == each and v.stream == "laser"] for each in CONTENT}


def test_a_cloud_is_declared_while_it_is_there_and_masked():
    clouded = inject(yard(), "dust", severity=0.6, seed=1, start="+10s", end="+20s")[0]
    found = judge(clouded)["C02"]
    states = [each.state for each in found]
    assert states[:3] == ["UNKNOWN"] * 3
    assert set(states[3:10]) == {"OK"}
    assert states[13:19] == ["BAD"] * 6
    assert set(states[25:]) == {"OK"}
    assert {each.reason for each in found[13:19]} == {"OBSCURANT"}
    region = found[15].region
    assert region is not None
    assert region.shape == (20, 180)
    nearer = (
        np.array(clouded["laser"]["ranges"])[300:320] < np.array(yard()["laser"]["ranges"])[300:320] - 0.6
    )
    assert np.mean(region[nearer]) > 0.7
    assert np.mean(region[~nearer]) < 0.02


def test_rain_is_named_and_leaves_the_laser_usable():
    found = judge(inject(yard(), "rain", severity=0.6, seed=1, start="+10s", end="+20s")[0])
    assert Counter(each.reason for each in found["C03"][10:20])["RAIN"] >= 9
    assert {each.reason for each in found["C03"][3:10] + found["C03"][21:]} == {""}
    assert {each.state for each in found["C02"][3:] + found["C03"][3:]} == {"OK"}


def test_somebody_who_walks_by_is_an_object_and_no_cloud():
    found = judge(yard(walker=True))
    assert Counter(each.reason for each in found["C01"])["OBJECT"] > 20
    assert {each.state for each in found["C01"][3:] + found["C02"][3:]} == {"OK"}
    assert all(each.score == 1.0 for each in found["C02"][3:])


@pytest.mark.parametrize("fault", ["dust", "smoke"])
def test_a_robot_that_drives_through_a_cloud_knows_it_and_masks_it(fault: str):
    clear = lane()
    clouded = inject(clear, fault, severity=0.5, seed=4, start="+8s", end="+18s")[0]
    found = judge(clouded)["C02"]
    assert found[0].reason == "LEARNING"
    assert {each.state for each in found[1:8] + found[21:]} == {"OK"}
    assert [each.raw for each in found[10:16]] == ["BAD"] * 6
    usual, now = (np.array(each["laser"]["ranges"].tolist()) for each in (clear, clouded))
    nearer = now < np.where(np.isnan(usual), np.inf, usual) - 0.6
    masked = np.concatenate([each.region for each in found[10:16] if each.region is not None])
    assert np.mean(masked[nearer[200:320]]) > {"dust": 0.95, "smoke": 0.8}[fault]
    assert np.mean(masked[(now == usual)[200:320]]) < 0.02


@cache
def smoky_lane() -> Recording:
    return inject(lane(), "smoke", severity=0.5, seed=4, start="+8s", end="+18s")[0]


def two_lasers(broken: bool = False) -> Recording:
    """Return the lane in smoke, and a second laser that is switched on in the midst of it."""
    smoky = smoky_lane()
    laser = smoky["laser"]
    second = laser.take(laser.t_ns >= START_NS + 11 * 10**9).replace(name="second")
    if broken:
        columns = {"ranges": laser["ranges"].tolist(), "start_angle": np.zeros(len(laser))}
        second = stream_of_values("second", laser.t_ns, columns, type=LaserScan)
    return smoky.replace(streams=(*smoky.streams, second))


def test_a_laser_that_knows_a_cloud_tells_one_that_has_just_begun():
    verdicts = [each for each in check(two_lasers(), checks=["C02"]) if each.stream == "second"]
    assert [each.raw for each in verdicts[11:16]] == ["BAD"] * 5
    assert {each.peers for each in verdicts[11:16]} == {("laser",)}
    assert {each.state for each in verdicts[21:]} == {"OK"}
    alone = two_lasers()
    alone = alone.replace(streams=(alone["second"], alone["odometry"]))
    assert {each.raw for each in check(alone, checks=["C02"])}.isdisjoint({"BAD"})


def test_a_laser_that_cannot_be_looked_at_does_not_stop_the_others():
    verdicts = list(check(two_lasers(broken=True), checks=["C02"]))
    assert {each.reason for each in verdicts if each.stream == "second"} == {"CHECK_FAILED"}
    assert [each.raw for each in verdicts if each.stream == "laser"][10:16] == ["BAD"] * 6


@pytest.mark.parametrize("walker", [False, True])
def test_a_robot_that_drives_takes_neither_posts_nor_people_for_a_cloud(walker: bool):
    found = judge(lane(walker=walker))
    assert {each.score for each in found["C02"][1:]} == {1.0}
    assert {each.reason for each in found["C03"][1:]} == {""}
    assert ("OBJECT" in {each.reason for each in found["C01"][1:]}) == walker


def test_rain_on_a_drive_is_named():
    found = judge(inject(lane(), "rain", severity=1.0, seed=4, start="+8s", end="+18s")[0])
    assert Counter(each.reason for each in found["C03"][8:18])["RAIN"] >= 8
    assert {each.state for each in found["C02"][1:]} == {"OK"}


def slow_lane(walker: bool = False) -> Recording:
    """Return the lane with five scans a second."""
    recording = lane(walker=walker)
    laser = recording["laser"]
    slow = laser.take(np.arange(len(laser)) % 4 == 0)
    return recording.replace(streams=(slow, recording["odometry"]))


@pytest.mark.parametrize(
    ("fault", "number", "reason"), [("rain", "C03", "RAIN"), ("fog", "C02", "OBSCURANT")]
)
def test_a_slow_laser_on_a_drive_tells_rain_and_fog(fault: str, number: str, reason: str):
    found = judge(inject(slow_lane(), fault, severity=0.8, seed=4, start="+8s", end="+18s")[0])
    named = [each.reason == reason for each in found[number]]
    assert sum(named[10:18]) >= 7
    assert not any(named[1:8] + named[21:])
    other = "C02" if number == "C03" else "C03"
    assert {each.reason for each in found[other][1:]} <= {"", "LEARNING"}


@pytest.mark.parametrize("walker", [False, True])
def test_a_slow_laser_on_a_drive_takes_neither_posts_nor_people_for_the_weather(walker: bool):
    found = judge(slow_lane(walker))
    assert {each.reason for number in ("C02", "C03") for each in found[number][1:]} == {""}


def test_a_robot_that_moves_without_poses_has_nothing_to_compare_with():
    t_ns = START_NS + np.arange(0, 30 * 10) * 100_000_000
    columns = {name: np.zeros(300) for name in ("vy", "vz", "wx", "wy", "wz")}
    odometry = stream_of_values("odometry", t_ns, {"vx": np.full(300, 0.3), **columns}, type=Odometry)
    recording = yard(speed=0.3)
    said = judge(recording.replace(streams=(*recording.streams, odometry)))
    assert {each.reason for each in said["C02"]} == {"MOVING"}


def at_rest(recording: Recording) -> Recording:
    """Return a recording with an odometry that stands still."""
    laser = recording["laser"]
    still = {name: np.zeros(len(laser)) for name in ("vx", "vy", "vz", "wx", "wy", "wz")}
    odometry = stream_of_values("odom", laser.t_ns, still, type=Odometry, frame="odom", child="body")
    return recording.replace(streams=(*recording.streams, odometry))


@pytest.mark.parametrize("severity", [0.1, 0.9])
@pytest.mark.parametrize("fault", ["dust", "smoke"])
def test_a_cloud_that_is_there_from_the_first_second_is_found_without_a_baseline(fault: str, severity: float):
    clouded = inject(yard(), fault, severity=severity, seed=2, start="+5s", end="+25s")[0]
    inside = at_rest(clouded).slice("+10s", "+20s")
    assert [v.state for v in check(inside).by_sensor["laser"]] == ["SUSPECT"] + ["BAD"] * 9
    found = judge(inside)["C02"]
    usual, now = (np.array(each["laser"]["ranges"].tolist())[200:] for each in (yard(), clouded))
    nearer = now < np.where(np.isnan(usual), np.inf, usual) - 0.6
    masked = np.concatenate([each.region for each in found[2:8] if each.region is not None])
    assert np.mean(masked[nearer[40:160]]) > 0.7
    assert np.mean(masked[(now == usual)[40:160]]) < 0.1


@pytest.mark.parametrize("fault", ["dust", "smoke"])
def test_a_robot_that_drives_in_a_cloud_from_the_first_second_knows_it(fault: str):
    clouded = inject(lane(), fault, severity=0.5, seed=4, start="+4s", end="+18s")[0].slice("+8s", "+16s")
    states = [v.state for v in check(clouded).by_sensor["laser"]]
    assert set(states[:2]) <= {"UNKNOWN", "SUSPECT", "BAD"}
    assert set(states[2:]) == {"BAD"}


def sparse_cloud() -> Recording:
    """Return a yard with 3 % of the returns at random ranges: drifting dust, or something else that moves."""
    clear = at_rest(yard(12))
    laser = clear["laser"]
    ranges = np.array(laser["ranges"].tolist())
    rng = np.random.default_rng(5)
    drifting = rng.random(ranges.shape) < 0.03
    ranges[drifting] = rng.uniform(1.0, 5.0, np.count_nonzero(drifting))
    columns = {name: laser[name] for name in ("start_angle", "angle_increment")}
    columns["ranges"] = ranges.tolist()
    return clear.replace(
        streams=(
            stream_of_values("laser", laser.t_ns, columns, type=LaserScan, frame="mast"),
            *clear.streams[1:],
        )
    )


@pytest.mark.parametrize("speed", [0.0, 5.0, 8.0])
def test_hedges_beside_a_car_are_no_cloud_once_it_is_known_how_they_look(speed: float) -> None:
    for seed in (1, 2):
        found = check(hedges(seed=seed, speed=speed), checks=["C01", "C02", "C03"])
        assert max(found.select(raw=("SUSPECT", "BAD")).column("t0_ns"), default=0) <= START_NS + 5 * 10**9


@pytest.mark.parametrize("fault", ["dust", "smoke"])
def test_between_hedges_a_cloud_that_is_over_is_forgotten(fault: str) -> None:
    clouded = inject(hedges(24), fault, severity=0.6, seed=2, start="+4s", end="+10s")[0]
    raw = [verdict.raw for verdict in judge(clouded)["C02"]]
    assert set(raw[6:9]) == {"BAD"}
    assert "BAD" not in raw[15:]
    assert "SUSPECT" not in raw[15:]


def test_smoke_on_a_drive_whose_poses_are_truth_is_found() -> None:
    """Marulan's localisation has the role truth: it is not judged, and lasers need it."""
    smoky = inject(lane(), "smoke", severity=0.5, seed=4, start="+8s", end="+16s")[0]
    poses = smoky["odometry"]
    columns = {name: np.asarray(poses[name]) for name in ("x", "y", "z", "qx", "qy", "qz", "qw", "vx")}
    nav = stream_of_values("Nav", poses.t_ns, columns, type=RigidBodyState, role="truth", frame="odom")
    found = judge(smoky.replace(streams=(smoky["laser"], nav.replace(child="body"))))["C02"]
    assert {verdict.raw for verdict in found[10:15]} == {"BAD"}


def test_somebody_who_comes_close_before_the_laser_scatters_and_is_no_cloud() -> None:
    """Beams at the edge of a sleeve scatter: a twentieth of what is early, in half a percent of the beams."""
    recording = yard(walker=True)
    laser = recording["laser"]
    ranges, usual = np.array(laser["ranges"].tolist()), np.array(yard()["laser"]["ranges"].tolist())
    near = ranges < usual - 1.0
    rng = np.random.default_rng(0)
    for scan in np.flatnonzero(near.any(axis=1)).tolist():
        beams = np.flatnonzero(near[scan])
        ranges[scan, beams[-1]] = rng.uniform(4.5, usual[scan, beams[-1]] - 0.7)
    columns = {name: laser[name] for name in ("start_angle", "angle_increment")} | {"ranges": ranges.tolist()}
    sleeved = stream_of_values("laser", laser.t_ns, columns, type=LaserScan, frame="mast")
    found = judge(recording.replace(streams=(sleeved,)))["C02"]
    assert {verdict.raw for verdict in found[5:]} == {"OK"}


def test_what_nothing_decides_is_unknown_and_a_reference_in_clear_air_decides_it():
    reports = report_sensors(check(sparse_cloud()))
    laser = next(report for report in reports if report.sensor == "laser")
    assert laser.state == "UNKNOWN"
    assert {problem.reason for problem in laser.problems} == {"NO_BASELINE"}
    with_reference = check(sparse_cloud(), reference=at_rest(yard(12, seed=3)))
    assert {v.state for v in with_reference.by_sensor["laser"][1:]} == {"BAD"}


def test_a_reference_of_another_place_is_not_used():
    narrow = yard(12)
    laser = narrow["laser"]
    columns = {name: laser[name] for name in ("start_angle", "angle_increment")}
    columns["ranges"] = (np.array(laser["ranges"].tolist()) * 2.0).tolist()
    wide = stream_of_values("laser", laser.t_ns, columns, type=LaserScan, frame="mast")
    reference = at_rest(narrow.replace(streams=(wide,)))
    found = check(at_rest(yard(12)), reference=reference)
    assert {v.state for v in found.by_sensor["laser"]} == {"OK"}


def test_a_reference_without_any_of_the_sensors_is_refused():
    with pytest.raises(UsageError, match="no stream of the same name"):
        check(yard(3), reference=Recording("other", (radar(),)))


def test_a_cloud_from_the_first_second_is_not_a_knocked_laser():
    clouded = inject(yard(), "smoke", severity=0.6, seed=1, start="+5s", end="+25s")[0]
    verdicts = check(at_rest(clouded).slice("+10s", "+29s"), checks=["X04"])
    assert {v.reason for v in verdicts if v.state in ("SUSPECT", "BAD")} == set()


def test_a_recording_that_begins_in_a_cloud_is_learned_again():
    found = judge(inject(yard(), "smoke", severity=0.9, seed=3, start="+0s", end="+8s")[0])["C02"]
    assert {each.state for each in found[20:]} == {"OK"}


def test_a_vehicle_that_passes_is_no_cloud():
    """Its flat front comes nearer by 1 m from sweep to sweep, ten times as fast as somebody walks."""
    base = yard(30)["laser"].take(np.arange(600) % 2 == 0)
    ranges, first = np.array(base["ranges"]), np.degrees(base["start_angle"])
    angles, t = first[:, None] + np.arange(ranges.shape[1]), (base.t_ns - base.t_ns[0])[:, None] / 1e9
    ahead = 60 - 10 * (t - 14)
    side = (angles > -85) & (angles < -75) & (ahead > 5) & (ahead < 60)
    ranges = np.where(side, ahead / np.cos(np.radians(angles + 80)), ranges)
    columns = {name: base.column(name) for name in base.columns}
    laser = stream_of_values("laser", base.t_ns, {**columns, "ranges": ranges.tolist()}, type=LaserScan)
    said = check(Recording("road", (laser,)), checks=["C01", "C02", "C03"])
    assert said.select(raw=("SUSPECT", "BAD")).column("reason") == []
    assert "OBJECT" in said.select(check="C01").column("reason")


@pytest.mark.parametrize("seen", ["dust", "somebody"])
def test_a_radar_sees_through_a_cloud_and_confirms_an_object(seen: str):
    """The one who walks stands in the radar's ranges, too."""
    eyes = radar()
    if seen == "dust":
        laser = inject(yard(), "dust", severity=0.6, seed=1, start="+10s", end="+20s")[0]
    else:
        laser, angle = yard(walker=True), np.asarray(eyes["angle"])
        aside = 4 * np.tan(angle) - (-3 + 6 * (eyes.t_ns - START_NS) / 30e9)
        near = np.where(np.abs(aside) < 0.6, 4 / np.cos(angle), eyes["range"])
        columns = {"range": near, "angle": angle, "reflectivity": np.asarray(eyes["reflectivity"])}
        eyes = stream_of_values("radar", eyes.t_ns, columns, type=RadarRange, frame="mast")
    both = laser.replace(streams=(*laser.streams, eyes))
    verdicts = list(check(both, checks=["X01", "C06"]))
    crossed = [each for each in verdicts if each.check == "X01"]
    assert {each.peers for each in crossed if each.score is not None} == {("radar",)}
    assert {each.state for each in verdicts if each.check == "C06"} == {"OK", "UNKNOWN"}
    bad = [each.state == "BAD" for each in crossed]
    assert all(bad[13:19]) if seen == "dust" else not any(bad)
    assert not any(bad[:10] + bad[25:])


def test_a_radar_whose_targets_fade_is_named():
    fading = radar()
    columns = {name: np.asarray(fading[name]).copy() for name in ("range", "angle", "reflectivity")}
    later = fading.t_ns > START_NS + 15 * 10**9
    columns["reflectivity"][later] -= 12
    faded = stream_of_values("radar", fading.t_ns, columns, type=RadarRange, frame="mast")
    states = [each.state for each in check(Recording("faded", (faded,)), checks=["C06"])]
    assert set(states[3:15]) == {"OK"}
    assert set(states[17:]) == {"BAD"}


def test_what_hangs_among_masked_returns_is_masked_and_a_surface_beside_is_not() -> None:
    ranges = np.full((9, 40), 10.0)
    ranges[:, :20] = np.random.default_rng(0).uniform(3.0, 3.8, (9, 20))  # a cloud before a wall
    ranges[:, 38:] = np.nan
    mask = ranges < 5
    mask[4, 10:12] = False  # two grains that look like a surface
    mask[0, 30] = True  # a drop
    grown = grow_mask(mask, ranges)
    assert grown[:, :20].all()
    assert np.argwhere(grown[:, 20:]).tolist() == [[0, 10]]
    assert not grow_mask(np.zeros_like(mask), ranges).any()
