"""What the Argo's two cameras see, by day, in low sun and at night; made when it is asked for."""

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

INFRARED_RATE = 12.5
"""Pictures a second (2.2.4)."""
VISUAL_RATES = {"static": 15.0, "dynamic": 10.0}
"""Pictures a second (2.2.3)."""
CLIP = (64, 41, 511, 398)
"""Left, top, width and height of what is kept of the 640 x 480 infra-red image: the size is the report's
(2.2.4), where it lies is not known, so it is the middle here."""
SHUTTER = 0.004
"""Seconds, invented: pictures are smeared by as much motion."""

CAR_LIGHTS = 150.0
"""Of a parked car, on the scale of `Lamp.power`; invented, as bright as its headlights look in the dark."""

LIGHTS: Mapping[str, Callable[[], Light]] = {
    # In the south the sun of the day shines from the north; here an afternoon in October.
    "day": lambda: Light(sun_elevation=0.75, sun_azimuth=np.radians(305.0)),
    "low_sun": lambda: dataclasses.replace(low_sun(), sun_elevation=0.07, sun_azimuth=np.radians(263.0)),
    # At night the vehicle's own headlights are always on; night_lights adds those of a parked car (4.3.1).
    "night": night_with_lights,
    "night_lights": night_with_lights,
}


@dataclass(frozen=True, eq=False)
class Eye:
    """One camera on a day.

    Attributes
    ----------
    argo : Argo
    name : str
        `VideoVisual` or `VideoIR`.
    camera : CameraModel
        Of the pictures as they are: scaled and clipped.
    light : Light
    car : (2, 3) array or None
        A parked car's headlights: where they are and where they shine, in the world.
    given : bool
        Whether readers will know this camera, so that pictures carry it.
    """

    argo: Argo
    name: str
    camera: CameraModel
    light: Light
    car: Floats | None
    given: bool

    def picture(self, row: Mapping[str, Any]) -> Image:
        """Return the picture of a row."""
        t_ns = int(row[arrow.T_NS])
        begin, end = self.argo.poses(self.name)(np.array([t_ns, t_ns + round(SHUTTER * 1e9)]))
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
    """Return the light with the headlights (2, 3) of a car, which lamps are told in the camera's axes."""
    turn, place = T_world_camera[:3, :3].T, T_world_camera[:3, 3]
    where, along = turn @ (car[0] - place), turn @ car[1]
    lamp = Lamp(_triple(where), _triple(along), half_angle=0.3, power=CAR_LIGHTS)
    return dataclasses.replace(light, lamps=(*light.lamps, lamp))


def _triple(vector: Floats) -> tuple[float, float, float]:
    x, y, z = (float(v) for v in vector)
    return x, y, z


def make_camera_streams(argo: Argo, light: str, scale: float, car: Floats | None) -> list[Stream]:
    """Return the streams of the infra-red and the visual camera."""
    shining = car if light == "night_lights" else None
    visual = scale_camera(argo.robot.cameras["VideoVisual"], scale)
    infrared = clip_values(scale_camera(argo.robot.cameras["VideoIR"], scale), scale)
    heat = dataclasses.replace(night() if light.startswith("night") else LIGHTS[light](), thermal=True)
    eyes = [
        (Eye(argo, "VideoIR", infrared, heat, None, given=False), INFRARED_RATE, "infrared"),
        (
            Eye(argo, "VideoVisual", visual, LIGHTS[light](), shining, given=True),
            _choose_visual_rate(argo),
            "visual",
        ),
    ]
    return [_make_stream(eye, rate, tag) for eye, rate, tag in eyes]


def _choose_visual_rate(argo: Argo) -> float:
    return VISUAL_RATES["static" if argo.stands else "dynamic"]


def _make_stream(eye: Eye, rate: float, tag: str) -> Stream:
    number = eye.argo.numbers(rate)
    times = eye.argo.start_ns + np.rint(number * (1000 / rate)).astype(np.int64) * 1_000_000
    table = arrow.table(times, {})
    return Stream(
        eye.name, Image, table, tag=tag, frame=eye.name, loader=partial(Eye.picture, eye), camera=eye.name
    )


def scale_camera(camera: CameraModel, scale: float) -> CameraModel:
    """Return a camera whose pictures are `scale` times as large."""
    if scale == 1.0:
        return camera
    width, height = max(round(camera.width * scale), 1), max(round(camera.height * scale), 1)
    K = lenses.scale_intrinsics(camera.K, width / camera.width, height / camera.height)
    return dataclasses.replace(camera, width=width, height=height, K=K)


def clip_values(camera: CameraModel, scale: float) -> CameraModel:
    """Return the camera of the middle of the infra-red picture, see `CLIP`."""
    left, top, width, height = (round(part * scale) for part in CLIP)
    K = lenses.crop_intrinsics(camera.K, left, top)
    return dataclasses.replace(camera, width=width, height=height, K=K, invented=True)
