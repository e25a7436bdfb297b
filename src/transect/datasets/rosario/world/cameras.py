"""The ZED stereo camera in a field: images and true depths, rendered on access."""

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


@dataclass(frozen=True)
class ExposureSettings:
    """Numbers of the exposure and of the clouds."""

    noon_exposure_s: float = 1.2e-3
    min_blur_exposure_s: float = 3.0e-3  # Shorter exposures blur by less than a pixel.
    noon_gain: float = 1.25  # Gain at noon that gives the brightness of real images.
    lag_s: float = 0.7  # Delay of the automatic exposure.
    cloud_interval_s: float = 3.0  # Time between two states of the clouds.
    max_cloud_ratio: float = 0.35  # Largest ratio of the sunlight that clouds absorb.


SETTINGS = ExposureSettings()


def noon_light() -> Light:
    """Return the light of a January noon at 33 degrees south."""
    return Light(1.22, 0.95, sky=0.17, zenith=(0.26, 0.38, 0.6), horizon=(0.9, 0.92, 0.95), clouds=0.12)


@dataclass(frozen=True)
class CloudySky:
    """Light with passing thin clouds, and the exposure that follows it."""

    light: Light  # without clouds in front of the sun
    seed: int

    def at(self, seconds: float) -> Light:
        """Return the light, given seconds since the start of the day."""
        return replace(self.light, sun=self.light.sun * self._transmission(seconds))

    def gain(self, seconds: float) -> float:
        """Return the exposure gain, which follows the light with a delay."""
        before = self.at(max(seconds - SETTINGS.lag_s, 0.0))
        return SETTINGS.noon_gain * _ground_irradiance(noon_light()) / _ground_irradiance(before)

    def _transmission(self, seconds: float) -> float:
        """Return the ratio of the sunlight that clouds transmit."""
        step = int(seconds // SETTINGS.cloud_interval_s)
        absorbed = [
            float(generator(self.seed, "rosario", "cloud", k).random()) ** 2 for k in (step, step + 1)
        ]
        u = seconds / SETTINGS.cloud_interval_s - step
        smooth = absorbed[0] + u * u * (3 - 2 * u) * (absorbed[1] - absorbed[0])
        return 1.0 - SETTINGS.max_cloud_ratio * smooth


def _ground_irradiance(light: Light) -> float:
    """Return the irradiance on level ground."""
    return light.sun * max(float(np.sin(light.sun_elevation)), 0.0) + light.sky


@dataclass(frozen=True, eq=False)
class ZedCamera:
    """One of the two cameras."""

    side: str  # `left` or `right`
    camera: CameraModel
    mount: Floats  # (4, 4), ``T_base_camera``
    t_ns: Ints  # (n,) of the images
    motion: Motion  # of base_link
    scene: Scene
    sky: CloudySky

    @property
    def names(self) -> list[str]:
        """Names of the images, without suffix."""
        return [f"{self.side}_{decimal_from_ns(t, 6)}" for t in self.t_ns.tolist()]

    def frame(self, index: int) -> RenderedFrame:
        """Render image number `index` with its depth."""
        start_ns = int(self.t_ns[index])
        seconds = (start_ns - int(self.motion.t_ns[0])) / NS
        gain = self.sky.gain(seconds)
        exposure_s = SETTINGS.noon_exposure_s * gain / SETTINGS.noon_gain
        body = self.motion.at(np.array([start_ns, start_ns + round(exposure_s * NS)])).transforms
        start, end = se3.compose(body, self.mount)
        noise = generator(self.sky.seed, f"Zed/{self.side}", "noise", index)
        return render(
            self.scene, self.camera, start, self.sky.at(seconds), t=seconds, exposure=gain, noise=noise,
            moved=end if exposure_s >= SETTINGS.min_blur_exposure_s else None,
        )  # fmt: skip

    def stream(self) -> Stream:
        """Return the stream of the images."""
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
        """Return the true depth files by name: TIFF, float32 in m along the optical axis, NaN for the sky."""
        return {f"depth/{name}.tiff": partial(self._depth, index) for index, name in enumerate(self.names)}

    def _depth(self, index: int) -> bytes:
        return encode_image(Image(self.frame(index).depth), ".tiff")


def make_stereo_pair(
    robot: Robot, frames: FrameTree, scale: float, t_ns: Ints, motion: Motion, scene: Scene, sky: CloudySky
) -> dict[str, ZedCamera]:
    """Return the two cameras, with images scaled by a factor."""
    cameras = {side: scale_camera(robot.cameras[side], scale) for side in SIDES}
    mounts = {side: frames.lookup(BASE, f"{side}_camera") for side in SIDES}
    return {side: ZedCamera(side, cameras[side], mounts[side], t_ns, motion, scene, sky) for side in SIDES}
