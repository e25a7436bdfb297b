"""The ZED stereo camera in a field: pictures and true depths, made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS, decimal_from_ns
from transect.formats.shared.images import encode_image
from transect.geometry import se3
from transect.recording import FrameTree, Robot, Stream, arrow
from transect.recording.arrow import PAYLOAD, T_NS
from transect.simulation.light import Light
from transect.simulation.motion import Motion
from transect.simulation.randomness import generator
from transect.simulation.raycast import Scene
from transect.simulation.render import RenderedFrame, render
from transect.types import CameraModel, Image

from .sensors import BASE, SIDES, scale_camera

SHUTTER, BLUR = 1.2e-3, 3.0e-3
"""s that the shutter is open at noon, and from which on pictures are blurred: less is within a pixel."""
GAIN = 1.25
"""Exposure in the light of noon that gives pictures as bright as the real ones."""
LAG = 0.7
"""s by which the exposure follows the light."""
CLOUD_STEP, CLOUD = 3.0, 0.35
"""s between two states of the sky, and how much of the sunlight clouds take at most."""


def find_noon() -> Light:
    """Return the sun of a January noon at 33 degrees south."""
    return Light(1.22, 0.95, sky=0.17, zenith=(0.26, 0.38, 0.6), horizon=(0.9, 0.92, 0.95), clouds=0.12)


@dataclass(frozen=True)
class Sky:
    """Light that changes as thin clouds pass, and the exposure that follows it."""

    light: Light  # without clouds before the sun
    seed: int

    def at(self, seconds: float) -> Light:
        """Return the light some seconds after the day began."""
        return replace(self.light, sun=self.light.sun * self._passing(seconds))

    def gain(self, seconds: float) -> float:
        """Return the exposure: right for the light of a moment ago."""
        noon_light, before = find_noon(), self.at(max(seconds - LAG, 0.0))
        return GAIN * _put_on_ground(noon_light) / _put_on_ground(before)

    def _passing(self, seconds: float) -> float:
        """Part of the sunlight that comes through."""
        step = int(seconds // CLOUD_STEP)
        taken = [float(generator(self.seed, "rosario", "cloud", k).random()) ** 2 for k in (step, step + 1)]
        u = seconds / CLOUD_STEP - step
        return 1.0 - CLOUD * (taken[0] + u * u * (3 - 2 * u) * (taken[1] - taken[0]))


def _put_on_ground(light: Light) -> float:
    """Irradiance on level ground."""
    return light.sun * max(float(np.sin(light.sun_elevation)), 0.0) + light.sky


@dataclass(frozen=True, eq=False)
class Eye:
    """One of the two cameras."""

    side: str  # `left` or `right`
    camera: CameraModel
    mount: Floats  # (4, 4), ``T_base_camera``
    t_ns: Ints  # (n,), when pictures are taken
    motion: Motion  # of base_link
    scene: Scene
    sky: Sky

    @property
    def names(self) -> list[str]:
        """Names of the pictures, without suffix."""
        return [f"{self.side}_{decimal_from_ns(t, 6)}" for t in self.t_ns.tolist()]

    def frame(self, index: int) -> RenderedFrame:
        """Return picture number `index` and what is true of it."""
        opened = int(self.t_ns[index])
        seconds = (opened - int(self.motion.t_ns[0])) / NS
        gain = self.sky.gain(seconds)
        open_for = SHUTTER * gain / GAIN
        body = self.motion.at(np.array([opened, opened + round(open_for * NS)])).transforms
        opens, closes = se3.compose(body, self.mount)
        noise = generator(self.sky.seed, f"Zed/{self.side}", "noise", index)
        return render(
            self.scene, self.camera, opens, self.sky.at(seconds), t=seconds, exposure=gain, noise=noise,
            moved=closes if open_for >= BLUR else None,
        )  # fmt: skip

    def stream(self) -> Stream:
        """Return the stream of the pictures."""
        number = {f"zed/{name}.png": index for index, name in enumerate(self.names)}

        def load(row: Mapping[str, Any]) -> Image:
            pixels = self.frame(number[row[PAYLOAD]]).image
            return Image(pixels, "rgb", t_ns=row[T_NS], frame=self.camera.frame, camera=self.camera)

        table = arrow.table(self.t_ns, {PAYLOAD: arrow.strings(number)})
        name = f"Zed/{self.side.capitalize()}"
        return Stream(
            name, Image, table, tag=self.side, frame=self.camera.frame, loader=load, camera=self.side
        )

    def depth_files(self) -> dict[str, Callable[[], bytes]]:
        """Return true depths by file name: TIFF, float32 in m along the optical axis, NaN for the sky."""
        return {f"depth/{name}.tiff": partial(self._depth, index) for index, name in enumerate(self.names)}

    def _depth(self, index: int) -> bytes:
        return encode_image(Image(self.frame(index).depth), ".tiff")


def eyes(
    robot: Robot, frames: FrameTree, scale: float, t_ns: Ints, motion: Motion, scene: Scene, sky: Sky
) -> dict[str, Eye]:
    """Return the two cameras, their pictures `scale` times as large as the ZED's."""
    cameras = {side: scale_camera(robot.cameras[side], scale) for side in SIDES}
    mounts = {side: frames.lookup(BASE, f"{side}_camera") for side in SIDES}
    return {side: Eye(side, cameras[side], mounts[side], t_ns, motion, scene, sky) for side in SIDES}
