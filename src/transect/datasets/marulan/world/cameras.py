"""Simulated images of the Argo's two cameras, by day, in low sun and at night, rendered on access."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import camera as lenses
from transect.recording import Stream, arrow
from transect.simulation.light import Lamp, Light, low_sun, night, night_with_lights
from transect.simulation.randomness import generator
from transect.simulation.render import render
from transect.types import CameraModel, Image

from .argo import Argo

VISUAL_RATES_HZ = {"static": 15.0, "dynamic": 10.0}
"""Image rates of the visual camera (2.2.3)."""
INFRARED_CLIP_PX = (64, 41, 511, 398)
"""Left, top, width and height of the kept part of the infrared image of 640 x 480. The size is from SDI
(2.2.4); the position is unknown, and centred here."""


@dataclass(frozen=True)
class CameraSettings:
    """Numbers of the cameras and of the lights of a parked car."""

    infrared_rate_hz: float = 12.5  # SDI, 2.2.4.
    exposure_s: float = 0.004  # Invented; causes motion blur.
    headlight_power: float = 150.0  # As `Lamp.power`; invented.
    headlight_half_angle_rad: float = 0.3


SETTINGS = CameraSettings()

LIGHTS: Mapping[str, Callable[[], Light]] = {
    # On the southern hemisphere the sun is in the north; here an afternoon in October.
    "day": lambda: Light(sun_elevation=0.75, sun_azimuth=np.radians(305.0)),
    "low_sun": lambda: dataclasses.replace(low_sun(), sun_elevation=0.07, sun_azimuth=np.radians(263.0)),
    # At night the vehicle's own headlights are always on; night_lights adds those of a parked car (4.3.1).
    "night": night_with_lights,
    "night_lights": night_with_lights,
}


@dataclass(frozen=True, eq=False)
class ArgoCamera:
    """A camera of the Argo on a simulated day."""

    argo: Argo
    name: str  # `VideoVisual` or `VideoIR`
    camera: CameraModel  # of the scaled and clipped images
    light: Light
    car: Floats | None  # (2, 3) headlights of a parked car: position and direction, in the world
    given: bool  # whether readers know this camera model, so that images contain it

    def image(self, row: Mapping[str, Any]) -> Image:
        """Render the image of a row."""
        t_ns = int(row[arrow.T_NS])
        begin, end = self.argo.poses(self.name)(np.array([t_ns, t_ns + round(SETTINGS.exposure_s * 1e9)]))
        light = self.light if self.car is None else light_by_car(self.light, self.car, begin)
        frame = render(
            self.argo.scene,
            self.camera,
            begin,
            light,
            t=(t_ns - self.argo.start_ns) * 1e-9,
            noise=generator(self.argo.seed, self.name, "noise", t_ns),
            colour=not light.thermal,
            moved=None if self.argo.stands else end,
        )
        mode = "thermal" if light.thermal else "rgb"
        camera = self.camera if self.given else None
        return Image(np.squeeze(frame.image), mode, t_ns, frame=self.name, camera=camera)


def light_by_car(light: Light, car: Floats, T_world_camera: Floats) -> Light:
    """Return the light with the headlights (2, 3) of a car; lamps are in the camera's axes."""
    R_camera_world, position = T_world_camera[:3, :3].T, T_world_camera[:3, 3]
    lamp = Lamp(
        _triple(R_camera_world @ (car[0] - position)),
        _triple(R_camera_world @ car[1]),
        half_angle=SETTINGS.headlight_half_angle_rad,
        power=SETTINGS.headlight_power,
    )
    return dataclasses.replace(light, lamps=(*light.lamps, lamp))


def _triple(vector: Floats) -> tuple[float, float, float]:
    x, y, z = (float(v) for v in vector)
    return x, y, z


def make_camera_streams(argo: Argo, light: str, scale: float, car: Floats | None) -> list[Stream]:
    """Return the streams of the infrared and the visual camera."""
    headlights = car if light == "night_lights" else None
    visual = scale_camera(argo.robot.cameras["VideoVisual"], scale)
    infrared = clip_camera(scale_camera(argo.robot.cameras["VideoIR"], scale), scale)
    heat = dataclasses.replace(night() if light.startswith("night") else LIGHTS[light](), thermal=True)
    infrared_camera = ArgoCamera(argo, "VideoIR", infrared, heat, None, given=False)
    visual_camera = ArgoCamera(argo, "VideoVisual", visual, LIGHTS[light](), headlights, given=True)
    return [
        _make_stream(infrared_camera, SETTINGS.infrared_rate_hz, "infrared"),
        _make_stream(visual_camera, VISUAL_RATES_HZ["static" if argo.stands else "dynamic"], "visual"),
    ]


def _make_stream(camera: ArgoCamera, rate: float, tag: str) -> Stream:
    number, name = camera.argo.numbers(rate), camera.name
    times = camera.argo.start_ns + np.rint(number * (1000 / rate)).astype(np.int64) * 1_000_000
    loader = partial(ArgoCamera.image, camera)
    return Stream(name, Image, arrow.table(times, {}), tag=tag, frame=name, loader=loader, camera=name)


def scale_camera(camera: CameraModel, scale: float) -> CameraModel:
    """Return the camera model of images scaled by a factor."""
    if scale == 1.0:
        return camera
    width, height = max(round(camera.width * scale), 1), max(round(camera.height * scale), 1)
    K = lenses.scale_intrinsics(camera.K, width / camera.width, height / camera.height)
    return dataclasses.replace(camera, width=width, height=height, K=K)


def clip_camera(camera: CameraModel, scale: float) -> CameraModel:
    """Return the camera model of the clipped infrared image, see `INFRARED_CLIP_PX`."""
    left, top, width, height = (round(part * scale) for part in INFRARED_CLIP_PX)
    K = lenses.crop_intrinsics(camera.K, left, top)
    return dataclasses.replace(camera, width=width, height=height, K=K, invented=True)
