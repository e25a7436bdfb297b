"""What checks of cameras, radars and lidars say of images, ranges and clouds that are unlike most."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from transect import robots
from transect.base.clocks import NS
from transect.errors import ParseError
from transect.integrity import check
from transect.integrity.config import read_config
from transect.integrity.report import report_sensors
from transect.recording import FrameTree, Recording, Stream, arrow, stream_of_values
from transect.types import Image, JointState, Odometry, RadarRange, RadarSpectrum, Verdict

from .recordings import START_NS, radar, spinning
from .test_camera_checks import CAMERA, camera, judge, recording, wheels
from .test_stereo_checks import eye
from .test_what_is_missing import noise, steady

Draw = Callable[[float], np.ndarray]


def drawn(draw: Draw, mode: str = "gray", seconds: int = 8, name: str = "eye", **about: Any) -> Stream:
    """Return four images a second, by what is drawn at a time (s)."""

    def load(row: Mapping[str, Any]) -> Image:
        return Image(draw((int(row["t_ns"]) - START_NS) / NS), mode, int(row["t_ns"]), name)

    t_ns = START_NS + np.arange(4 * seconds) * (NS // 4)
    table = arrow.table(t_ns, {"payload": arrow.strings([f"{k}.png" for k in range(len(t_ns))])})
    return Stream(name, Image, table, loader=load, **about)


def rough(seed: int, shape: tuple[int, int] = (48, 64)) -> np.ndarray:
    """Return grey levels of rough ground, 20 to 200."""
    return np.random.default_rng(seed).integers(20, 200, shape).astype(np.float64)


# Cameras


@pytest.mark.parametrize(
    ("white", "kind"), [(255, np.uint8), (1023, np.uint16), (4095, np.uint16), (1.0, np.float32)]
)
def test_white_is_the_end_of_a_cameras_own_range(white: float, kind: type) -> None:
    """Documents' cameras have 8 to 16 bits: 30 % of the pixels at the end of any of them are burned."""
    view = rough(0) / 255 * white
    view[:, :20] = white
    last = judge(Recording("burned", (drawn(lambda t: view.astype(kind)),)), "C08")["C08"][-1]
    assert (last.raw, last.reason) == ("SUSPECT", "OVEREXPOSED")
    assert last.evidence["bright"] == pytest.approx(20 / 64, abs=0.001)


@pytest.mark.parametrize("number", CAMERA)
def test_images_drawn_from_a_radar_are_of_no_camera(number: str) -> None:
    t_ns = START_NS + np.arange(64) * (NS // 4)
    spectra = stream_of_values(
        "radar", t_ns, {"reflectivity": np.ones((64, 8))}, type=RadarSpectrum, frame="eye"
    )
    found = judge(Recording("drawn", (camera(), camera("heat", infrared=True), wheels(0.0), spectra)), number)
    assert {v.reason for v in found[number]} == {"NOT_A_CAMERA"}


@pytest.mark.parametrize("number", ["C07", "C09", "C10"])
def test_of_burned_images_nothing_but_their_exposure_is_said(number: str) -> None:
    burned = camera(paint=lambda t, view: np.where(np.arange(64) < 40, 255.0, view))
    found = judge(recording(burned), number, "C08")
    assert {v.reason for v in found[number]} == {"OVEREXPOSED"}
    assert {v.raw for v in found["C08"]} == {"BAD"}


def test_heat_is_no_light() -> None:
    found = judge(recording(camera(infrared=True)), "C08", "C10")
    assert {v.reason for each in found.values() for v in each} == {"THERMAL"}
    alone = judge(recording(camera(infrared=True), camera("other")), "X02")["X02"]
    assert {(v.reason, v.note) for v in alone} == {("NO_PEER", "it is the infrared camera")}


def test_a_line_that_is_another_one_and_as_clear_is_learned_again_after_ten_windows() -> None:
    scenes = [np.repeat(rough(seed)[..., None], 3, axis=2).astype(np.uint8) for seed in (1, 2)]
    eye_ = drawn(lambda t: scenes[t >= 8], "rgb", seconds=24)
    still: dict[str, Any] = dict.fromkeys(("vx", "vy", "vz", "wx", "wy", "wz"), 0.0)
    odom = steady("odom", Odometry, still, 10, 24)
    said = [v.reason for v in judge(Recording("turned", (eye_, odom)), "C09")["C09"]]
    assert said[:3] == ["LEARNING"] * 3
    assert said[3:8] == [""] * 5
    assert said[8:18] == ["MOVING"] * 10
    assert said[18:21] == ["LEARNING"] * 3
    assert said[21:] == [""] * 3


def test_a_camera_whose_images_change_their_size_is_learned_again() -> None:
    """The line of another size cannot be held against what was usual."""
    view = drawn(lambda t: rough(3, (48, 64) if t < 6 else (48, 80)).astype(np.uint8), seconds=12)
    still = recording(view)
    said = [v.reason for v in judge(still, "C09")["C09"]][:12]
    assert said[3:6] == [""] * 3
    assert said[6:9] == ["LEARNING"] * 3
    assert said[9:] == [""] * 3


@pytest.mark.parametrize(
    ("speed", "raw", "reason"), [(0.0, "UNKNOWN", "AT_REST"), (1.0, "BAD", "FROZEN_IMAGE")]
)
def test_a_camera_that_never_gave_two_images_is_accepted_while_the_robot_stands(
    speed: float, raw: str, reason: str
) -> None:
    same = drawn(lambda t: rough(4).astype(np.uint8), seconds=16)
    found = judge(recording(same, speed=speed), "C11")["C11"]
    assert {(v.raw, v.reason) for v in found[3:]} == {(raw, reason)}


def test_images_that_show_nothing_are_no_copies_of_each_other() -> None:
    black = (drawn(lambda t: np.zeros((48, 64), np.uint8), name=name) for name in ("one", "two"))
    found = check(Recording("dark", tuple(black)), checks=["X08"]).select(stream="two")
    assert {(v.reason, v.note) for v in found} == {("AT_REST", "its images show nothing")}


# Stereo


def stereo(number: str, *pair: Stream, frames: FrameTree | None = None) -> list[Verdict]:
    verdicts = check(Recording("pair", pair, frames=frames or FrameTree()), checks=[number])
    assert verdicts.select(reason="CHECK_FAILED").column("note") == []
    return list(verdicts.select(stream="left"))


def changed(stream: Stream, change: Callable[[Image], Image]) -> Stream:
    load = stream.loader
    assert load is not None
    return stream.replace(loader=lambda row: change(load(row)))


@pytest.mark.parametrize("number", ["E05", "X09"])
def test_a_pair_that_cannot_be_followed_says_what_it_lacks(number: str) -> None:
    left, right = eye("left", 0), eye("right", 1)
    bare = [changed(each, lambda image: dataclasses.replace(image, camera=None)) for each in (left, right)]
    assert {v.reason for v in stereo(number, *bare)} == {"NO_CAMERA"}
    small = [
        changed(each, lambda image: dataclasses.replace(image, data=image.data[:60, :80], camera=None))
        for each in (left, right)
    ]
    assert {v.reason for v in stereo(number, *small)} == {"TOO_FEW"}
    late = right.replace(source=right.take(right.t_ns >= START_NS + 4 * NS).table)
    assert {v.reason for v in stereo(number, left, late)[:4]} == {"NO_PEER"}
    early = right.replace(source=right.take(right.t_ns < START_NS + 4 * NS).table)
    assert {v.reason for v in stereo(number, left, early)[5:]} == {"NO_PEER"}


def test_images_without_a_feature_have_no_matches_that_determine_the_sides() -> None:
    plain = [
        changed(eye(name, side), lambda image: dataclasses.replace(image, data=np.full_like(image.data, 90)))
        for name, side in (("left", 0), ("right", 1))
    ]
    frames, right = FrameTree(), np.eye(4)
    right[0, 3] = 0.1
    frames.add_static("left", "right", right)
    assert {v.reason for v in stereo("X09", *plain, frames=frames)} == {"TOO_FEW"}
    assert {(v.raw, v.reason) for v in stereo("E05", *plain, frames=frames)[1:]} == {("BAD", "INLIERS")}


def test_a_camera_is_of_a_pair_by_its_name_where_no_tag_says_so() -> None:
    frames, right = FrameTree(), np.eye(4)
    right[0, 3] = 0.1
    frames.add_static("left", "right", right)
    named = [eye(name, side).replace(tag="") for name, side in (("left", 0), ("right", 1))]
    assert {v.raw for v in stereo("X09", *named, frames=frames)} == {"OK"}


# Radars, lidars, joints


@pytest.mark.parametrize(("dB", "raw"), [(1.0, "OK"), (6.0, "SUSPECT"), (15.0, "BAD")])
def test_a_radar_that_is_weaker_than_at_first_is_named(dB: float, raw: str) -> None:
    """Limits 3 and 10 dB below the usual peak: of ranges their reflectivity, of spectra peak over median."""
    base = radar(20)
    late = base.t_ns >= START_NS + 10 * NS
    columns = {name: np.asarray(base[name]) for name in ("range", "angle", "reflectivity")}
    weaker = {**columns, "reflectivity": columns["reflectivity"] - dB * late}
    ranges = stream_of_values("radar", base.t_ns, weaker, type=RadarRange)
    bins = noise(0.1, 20.0)(np.zeros(400 * 16)).reshape(400, 16)
    bins[:, 5] = 50.0
    bins[200:, 5] -= dB
    spectra = steady("radar", RadarSpectrum, {"reflectivity": bins}, 20, 20)
    for stream in (ranges, spectra):
        found = list(check(Recording("radar", (stream,)), checks=["C06"]))
        assert {v.reason for v in found[:2]} == {"LEARNING"}
        assert {v.raw for v in found[4:10]} == {"OK"}
        assert {v.raw for v in found[11:]} == {raw}
        assert found[-1].evidence["loss"] == pytest.approx(dB, abs=0.3)


@pytest.mark.parametrize(("factor", "raw"), [(1.0, "OK"), (2.2, "SUSPECT"), (6.0, "BAD")])
def test_a_radar_whose_ranges_scatter_more_than_at_first_is_named(factor: float, raw: str) -> None:
    """Limits 1.5 and 3 times the usual deviation, over bearings with a target, in two windows."""
    rng, rows = np.random.default_rng(1), np.arange(30 * 180)
    angle = np.radians(3.0 * (rows % 30))
    sigma = np.where(rows < 20 * 180, 0.1, 0.1 * factor)
    columns = {
        "range": 12 + rng.normal(0, 1, len(rows)) * sigma,
        "angle": angle,
        "reflectivity": 40.0 + 0 * angle,
    }
    stream = stream_of_values("radar", START_NS + rows * (NS // 180), columns, type=RadarRange)
    found = list(check(Recording("radar", (stream,)), checks=["C06"]))
    assert {v.raw for v in found[9:20]} == {"OK"}
    assert raw in {v.raw for v in found[22:]}
    assert np.median([v.evidence["scatter"] for v in found[22:]]) == pytest.approx(factor, rel=0.3)


def test_a_radar_on_a_robot_that_moves_has_other_targets() -> None:
    found = check(Recording("radar", (radar(8), wheels(1.0))), checks=["C06"]).select(stream="radar")
    assert {v.reason for v in found if v.n} == {"MOVING"}


def test_clouds_of_few_points_have_no_neighbours_that_tell_anything() -> None:
    found = check(Recording("hall", (spinning(seconds=4, rings=2),)), checks=["C04"])
    assert {v.reason for v in found} == {"TOO_FEW"}


@pytest.mark.parametrize(("off", "states"), [(0.0, {"OK"}), (0.5, {"BAD"})])
def test_joints_of_insights_arm_are_held_against_its_own_limits(off: float, states: set[str]) -> None:
    joints = len(robots.load("ida").constants["joints"])
    angles = noise(1e-4, 0.3)(np.zeros(300 * joints)).reshape(300, joints)
    wrong = angles.copy()
    wrong[150:, 1] += off
    streams = (
        steady("arm/encoder", JointState, {"position": angles}, 10, 30),
        steady("arm/potentiometer", JointState, {"position": wrong}, 10, 30),
    )
    found = check(Recording("arm", streams, robot=robots.load("ida")), checks=["X06"])
    for name in ("arm/encoder", "arm/potentiometer"):
        said = list(found.select(stream=name))
        assert {v.raw for v in said[:15]} == {"OK"}
        assert {v.raw for v in said[18:]} == states
        if off:
            assert {(v.reason, v.evidence["joint"]) for v in said[18:]} == {("DISAGREE", 2.0)}


def test_clouds_are_not_held_against_each_other() -> None:
    two = (spinning("front", 3, rings=2), spinning("rear", 3, rings=2))
    assert {v.reason for v in check(Recording("clouds", two), checks=["X08"])} == {"NO_NUMBERS"}


def test_two_cameras_of_light_do_not_show_what_infrared_would() -> None:
    found = judge(recording(camera(), camera("other")), "X02")["X02"]
    assert {(v.reason, v.note) for v in found} == {("NO_PEER", "there is no infrared image")}


def test_of_one_image_nobody_knows_whether_it_was_repeated() -> None:
    """Windows of a quarter of a second have one image each: the second one can be held against the first."""
    config = read_config("window: 0.25", "robot.yaml")
    eyes = drawn(lambda t: rough(round(4 * t)).astype(np.uint8), seconds=2)
    said = [v.reason for v in check(Recording("eye", (eyes,)), config, checks=["C11"])]
    assert said == ["TOO_FEW"] + [""] * 7


def test_a_camera_whose_images_do_not_decode_is_not_ok() -> None:
    def truncated(image: Image) -> Image:
        if image.t_ns < START_NS + 4 * NS:
            return image
        raise ParseError("eye.png ends too early", where="eye.png")

    stream = changed(drawn(lambda t: rough(int(10 * t))), truncated)
    found = report_sensors(check(Recording("day", (stream,))))[0]
    assert found.state in ("UNKNOWN", "SUSPECT", "BAD")
    (problem,) = {each.reason: each for each in found.problems if each.reason == "UNREADABLE"}.values()
    assert problem.spans == ((START_NS + 4 * NS, found.windows[-1].t1_ns),)
