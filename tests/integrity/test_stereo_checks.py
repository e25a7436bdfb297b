"""Stereo pairs: cameras that are exchanged, and images that carry no pose."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from transect.base.clocks import NS
from transect.integrity import check
from transect.recording import FrameTree, Recording, Stream, arrow, stream_of_values
from transect.simulation.faults import inject
from transect.types import CameraModel, Image, Record, Verdict

from .recordings import START_NS

DURATION_S, RATE_HZ = 8, 4
NEAR_DISPARITY_PX, FAR_DISPARITY_PX = 16, 6
"""Pixels of disparity of the lower and the upper half of what is seen."""
K = np.array([[300.0, 0.0, 159.5], [0.0, 300.0, 119.5], [0.0, 0.0, 1.0]])


def eye(name: str, side: int) -> Stream:
    """Return 320 x 240 images of two rough boards, which pass by; of the right camera for side 1."""
    rng = np.random.default_rng(2)
    blocks = np.kron(rng.integers(20, 230, (60, 300)), np.ones((4, 4))) + rng.normal(0, 8, (240, 1200))
    camera = CameraModel(name, 320, 240, K, frame=name)

    def load(row: Mapping[str, Any]) -> Image:
        frame = round((int(row["t_ns"]) - START_NS) * RATE_HZ / NS)
        far, near = (
            100 + shift * (frame + side) for shift in (FAR_DISPARITY_PX, NEAR_DISPARITY_PX)
        )  # a step is the baseline
        view = np.vstack([blocks[:120, far : far + 320], blocks[120:, near : near + 320]])
        noise = np.random.default_rng([side, frame]).normal(0, 2, view.shape)
        return Image(np.clip(view + noise, 0, 255).astype(np.uint8), "gray", int(row["t_ns"]), name, camera)

    t_ns = START_NS + np.arange(DURATION_S * RATE_HZ) * (NS // RATE_HZ)
    table = arrow.table(t_ns, {"payload": arrow.strings([f"{k}.png" for k in range(len(t_ns))])})
    return Stream(name, Image, table, tag=name, frame=name, camera=name, loader=load)


@pytest.fixture(scope="module")
def pair() -> Recording:
    frames = FrameTree()
    right = np.eye(4)
    right[0, 3] = 0.1
    frames.add_static("left", "right", right)
    cameras = {name: CameraModel(name, 320, 240, K, frame=name) for name in ("left", "right")}
    return Recording("pair", (eye("left", 0), eye("right", 1)), frames=frames, cameras=cameras)


def judge(recording: Recording) -> dict[str, list[Verdict]]:
    verdicts = list(check(recording, checks=["E05", "X09"]))
    assert {v.note for v in verdicts if v.reason == "CHECK_FAILED"} == set()
    return {name: [v for v in verdicts if v.check == name and v.stream == "left"] for name in ("E05", "X09")}


def test_a_sound_pair_has_a_pose_and_its_sides(pair: Recording):
    found = judge(pair)
    assert {v.state for v in (*found["E05"], *found["X09"])} == {"OK"}
    assert found["E05"][3].evidence["inliers"] > 0.8


def test_a_camera_that_has_the_pictures_of_another_is_named(pair: Recording):
    copied, _ = inject(pair, "copied_stream", 1.0, streams=["right"])
    for recording, states in ((pair, {"OK"}), (copied, {"BAD", "SUSPECT"})):
        found = check(recording, checks=["X08"]).select(stream="right")
        assert {v.state for v in found} == states
    assert "samples of left" in next(iter(found)).note


def test_exchanged_cameras_are_named_with_the_fix(pair: Recording):
    changed, _ = inject(pair, "exchanged_cameras", 1.0)
    found = judge(changed)
    assert {(v.state, v.reason) for v in found["X09"][1:]} == {("BAD", "EXTRINSIC")}
    assert "exchange their streams" in found["X09"][2].note
    assert {v.reason for v in found["E05"]} == {"EXCHANGED"}  # one mistake, one name


@pytest.mark.parametrize(
    ("fault", "streams", "given", "reason"),
    [("blur", "*", {"width": 0.3}, "INLIERS"), ("extrinsic_bump", "right", {}, "EXTRINSIC")],
)
def test_images_that_carry_no_pose_are_named_while_it_lasts(
    pair: Recording, fault: str, streams: str, given: dict[str, float], reason: str
):
    wrong, _ = inject(pair, fault, 1.0, 2, streams=[streams], start="+3s", end="+6s", parameters=given)
    found = judge(wrong)["E05"]
    assert {v.state for v in found[:3]} == {"OK"}
    assert {(v.state, v.reason) for v in found[4:6]} == {("BAD", reason)}
    assert {v.raw for v in found[6:]} == {"OK"}


def test_night_carries_no_pose(pair: Recording):
    def darken(stream: Stream) -> Stream:
        load = stream.loader
        assert load is not None

        def dark(row: Mapping[str, Any]) -> Image:
            image = load(row)
            return dataclasses.replace(image, data=(image.data * 0.02).astype(np.uint8))

        return stream.replace(loader=dark)

    night = pair.replace(streams=tuple(darken(stream) for stream in pair)).slice(None, "+3s")
    assert {(v.raw, v.reason) for v in judge(night)["E05"]} == {("BAD", "INLIERS")}


def test_one_camera_is_no_pair(pair: Recording):
    alone = pair.replace(streams=(pair["left"],))
    assert {v.reason for v in check(alone, checks=["E05", "X09"])} == {"NO_PEER"}


def test_the_qualities_that_a_run_recorded_are_judged():
    t_ns = START_NS + np.arange(20) * (NS // 2)
    few = np.where(np.arange(20) < 10, 0.9, 0.05)
    streams = (
        stream_of_values("inliers", t_ns, {"value": few}, type=Record),
        stream_of_values("vo/inliers", t_ns, {"value": few * 100}, type=Record),
        stream_of_values("speed", t_ns, {"value": few}, type=Record),
    )
    verdicts = check(Recording("run", streams), checks=["E05"])
    for name in ("inliers", "vo/inliers"):
        found = list(verdicts.select(stream=name))
        assert {v.state for v in found[:5]} == {"OK"}
        assert {(v.state, v.reason) for v in found[6:]} == {("BAD", "INLIERS")}
    assert {v.reason for v in verdicts.select(stream="speed")} == {"NO_NUMBERS"}
