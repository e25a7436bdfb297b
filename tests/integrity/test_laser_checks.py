"""Early returns of a laser: clouds, drops, objects, and what cannot be told."""

from __future__ import annotations

from collections import Counter

import numpy as np

from transect.integrity import check
from transect.recording import Recording, stream_of_values
from transect.simulation.faults import inject
from transect.types import Odometry, Verdict

from .recordings import START_NS, yard

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


def test_a_robot_that_moves_has_nothing_usual_to_compare_with():
    t_ns = START_NS + np.arange(0, 30 * 10) * 100_000_000
    columns = {name: np.zeros(300) for name in ("vy", "vz", "wx", "wy", "wz")}
    odometry = stream_of_values("odometry", t_ns, {"vx": np.full(300, 0.3), **columns}, type=Odometry)
    recording = yard(speed=0.3)
    said = judge(recording.replace(streams=(*recording.streams, odometry)))
    assert {each.reason for each in said["C02"]} == {"MOVING"}


def test_a_recording_that_begins_in_a_cloud_is_learned_anew():
    found = judge(inject(yard(), "smoke", severity=0.9, seed=3, start="+0s", end="+8s")[0])["C02"]
    assert {each.state for each in found[20:]} == {"OK"}
