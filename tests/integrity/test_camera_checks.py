"""Images that are blurred, burned, dark, veiled or frozen, and drives that are none of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import transect
from transect.base.clocks import NS
from transect.integrity import check
from transect.integrity.image_statistics import ImageStatistics
from transect.recording import Recording, Stream, arrow, stream_of_values
from transect.simulation.faults import inject
from transect.types import Image, Odometry, RadarSpectrum, Verdict

from .recordings import START_NS

CAMERA = ("C07", "C08", "C09", "C10", "C11", "X02")
DURATION_S, RATE_HZ = 16, 4

Paint = Callable[[float, np.ndarray], np.ndarray]


def camera(
    name: str = "eye", speed: float = 0.0, infrared: bool = False, paint: Paint | None = None
) -> Stream:
    """Return 64 x 48 images of rough ground, posts and a bright sky, which pass by at `speed` pixels/s."""
    rng = np.random.default_rng(5)
    scene = np.repeat(rng.uniform(25, 160, (12, 400)), 4, axis=0) * rng.uniform(0.6, 1.0, (48, 400))
    scene[:8] = 200
    scene[:, ::16] = 10

    def load(row: Mapping[str, Any]) -> Image:
        t = (int(row["t_ns"]) - START_NS) / NS
        noise = np.random.default_rng(round(t * 100)).normal(0, 1, (48, 64))
        view = np.roll(scene, -int(speed * t), axis=1)[:, :64] + noise
        view = paint(t, view) if paint else view
        grey = np.clip(view, 0, 255).astype(np.uint8)
        pixels = grey if infrared else np.repeat(grey[..., None], 3, axis=2)
        return Image(pixels, "thermal" if infrared else "rgb", int(row["t_ns"]), name)

    t_ns = START_NS + np.arange(DURATION_S * RATE_HZ) * (NS // RATE_HZ)
    table = arrow.table(t_ns, {"payload": arrow.strings([f"{i}.png" for i in range(len(t_ns))])})
    tag = "infrared" if infrared else "visual"
    return Stream(name, Image, table, tag=tag, frame=name, loader=load)


def wheels(speed: float) -> Stream:
    t_ns = START_NS + np.arange(DURATION_S * 10) * (NS // 10)
    still = dict.fromkeys(("vy", "vz", "wx", "wy", "wz"), np.zeros(len(t_ns)))
    return stream_of_values("odom", t_ns, {"vx": np.full(len(t_ns), speed), **still}, type=Odometry)


def recording(*cameras: Stream, speed: float = 0.0) -> Recording:
    return Recording("yard", (*(cameras or (camera(speed=9 * speed),)), wheels(speed)))


def judge(rec: Recording, *ids: str, stream: str = "eye") -> dict[str, list[Verdict]]:
    verdicts = list(check(rec, checks=ids or CAMERA))
    return {each: [v for v in verdicts if v.check == each and v.stream == stream] for each in ids or CAMERA}


@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_a_clear_drive_is_clear_whether_the_robot_stands_or_moves(speed: float):
    found = judge(recording(camera(speed=9 * speed), camera("heat", infrared=True), speed=speed))
    learned = {"C07": 3, "C09": 3, "X02": 3}
    for name, verdicts in found.items():
        wanted = "UNKNOWN" if speed and name in ("C09", "X02") else "OK"
        assert {v.state for v in verdicts[learned.get(name, 0) :]} == {wanted}, name
    if speed:
        assert {v.reason for v in found["C09"]} == {"MOVING"}


@pytest.mark.parametrize(
    ("fault", "severity", "name", "reason", "speed"),
    [
        ("blur", 1.0, "C07", "BLUR", 1.0),
        ("overexposure", 0.7, "C08", "OVEREXPOSED", 1.0),
        ("haze", 1.0, "C09", "HAZE", 0.0),
        ("haze", 1.0, "C10", "HAZE", 1.0),
        ("stuck", 1.0, "C11", "FROZEN_IMAGE", 1.0),
        ("stuck", 1.0, "C11", "FROZEN_IMAGE", 0.0),
    ],
)
def test_a_fault_is_named_while_it_lasts(fault: str, severity: float, name: str, reason: str, speed: float):
    far = {"width": 0.15} if fault == "blur" else None
    wrong = inject(
        recording(speed=speed), fault, severity, streams=["eye"], parameters=far, start="+6s", end="+12s"
    )[0]
    found = judge(wrong, name)[name]
    assert "BAD" not in {v.state for v in found[:6]}
    assert {(v.state, v.reason) for v in found[8:12]} == {("BAD", reason)}
    assert {v.raw for v in found[13:]} == {"OK"}


def test_haze_and_too_much_light_are_no_blur():
    for fault in ("haze", "overexposure"):
        wrong = inject(recording(speed=1.0), fault, 1.0, streams=["eye"], start="+6s", end="+12s")[0]
        assert {v.state for v in judge(wrong, "C07")["C07"][3:]} <= {"OK", "UNKNOWN"}, fault


def test_night_is_dark_and_less_light_is_no_haze():
    def dusk(t: float, view: np.ndarray) -> np.ndarray:
        return view * (0.5 if t >= 6 else 1.0)

    def night(t: float, view: np.ndarray) -> np.ndarray:
        return view * (0.02 if t >= 6 else 1.0)

    found = judge(recording(camera(paint=dusk)), "C08", "C09", "C10")
    assert {v.state for each in found.values() for v in each[3:]} == {"OK"}
    found = judge(recording(camera(paint=night)), "C08")["C08"]
    assert {(v.state, v.reason) for v in found[8:]} == {("BAD", "DARK")}


@pytest.mark.parametrize("step", [0, 30])
def test_a_wall_is_not_declared_to_be_haze_or_blur(step: int):
    def wall(t: float, view: np.ndarray) -> np.ndarray:
        y, x = np.mgrid[:48, :64]
        noise = np.random.default_rng(int(t * 4)).normal(0, 1, view.shape)
        return view if t < 6 else 120 + 0.3 * y + step * (x > 40) + noise

    found = judge(recording(camera(speed=9, paint=wall), speed=1.0), "C07", "C08", "C10")
    assert "BAD" not in {v.state for each in found.values() for v in each}


def test_orange_light_in_front_of_a_camera_that_stands_is_smoke():
    day = inject(recording(), "smoke", 1.0, seed=2, streams=["eye"], start="+6s", end="+12s")[0]
    found = judge(day, "C09")["C09"]
    assert {v.reason for v in found if v.state == "BAD"} == {"SMOKE"}


def test_a_loss_in_both_images_is_an_obscurant_and_in_the_visual_one_alone_the_light():
    def veil(through: float) -> Paint:
        return lambda t, view: 150 + (view - 150) * (through if t >= 6 else 1.0)

    eye = camera(paint=veil(0.2))
    found = judge(recording(eye, camera("heat", infrared=True, paint=veil(0.8))), "X02")["X02"]
    assert {(v.state, v.reason, v.peers) for v in found[8:]} == {("BAD", "OBSCURANT", ("heat",))}
    found = judge(recording(eye, camera("heat", infrared=True)), "X02")["X02"]
    assert {v.state for v in found[8:]} == {"OK"}
    assert "light" in found[9].note
    assert {v.reason for v in judge(recording(eye), "X02")["X02"]} == {"NO_PEER"}


def test_each_image_is_decoded_once_and_no_more_than_asked_for(monkeypatch: pytest.MonkeyPatch):
    rows: list[int] = []
    made = ImageStatistics.__init__

    def count(self: ImageStatistics, row: int, *args: Any, **kwargs: Any) -> None:
        rows.append(row)
        made(self, row, *args, **kwargs)

    monkeypatch.setattr(ImageStatistics, "__init__", count)
    judge(recording())
    assert rows == list(range(DURATION_S * RATE_HZ))


def test_a_picture_of_a_radar_is_no_camera_s():
    radar = stream_of_values(
        "radar", START_NS + np.arange(3) * NS, {"reflectivity": [[1.0, 2.0]] * 3, "angle": np.zeros(3)},
        type=RadarSpectrum, frame="eye",
    )  # fmt: skip
    found = judge(Recording("drawn", (camera(), radar)), "C08")["C08"]
    assert {v.reason for v in found} == {"NOT_A_CAMERA"}


@pytest.mark.parametrize(
    ("folder", "reasons"),
    [
        ("kitti_06_turn", set()),
        ("euroc_v101", set()),
        ("radiate_fog", {"HAZE", "OVEREXPOSED"}),  # fog, water on the lens; a fifth is white at first
    ],
)
def test_real_drives_are_hazy_in_fog_and_clear_elsewhere(real_data: Path, folder: str, reasons: set[str]):
    rec = transect.open(real_data / folder)
    rec = Recording(folder, tuple(s for s in rec if s.type is not Image or s.tag == "left"))
    verdicts = [v for v in check(rec, checks=("C07", "C08", "C10", "C11")) if v.state != "UNKNOWN"]
    assert {v.reason for v in verdicts if v.state != "OK"} == reasons
    assert not [v for v in verdicts if v.state == "BAD"]
