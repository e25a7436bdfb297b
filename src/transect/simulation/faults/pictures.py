"""Pictures that are blurred or too bright, and a veil over them.

``I = J T + A (1 - T)``: J is the image in clear air, T the transmission, A the light of the air. How far away
a pixel's scene is, no camera knows: all of it is taken to be as far as the parameter `depth`, 15 m, says.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.recording import Stream
from transect.types import CameraModel, Image

from .air import Air, place_of_sensor, through
from .model import Change, Event, Fault
from .samples import wrap


def blur(stream: Stream, event: Event) -> Change:
    """Smear every picture along one line, as a bump does while the shutter is open."""
    return wrap(stream, event, event.inside(stream), _share(stream, event), partial(_smear, stream, event))


def _smear(stream: Stream, event: Event, index: int, image: Image) -> Image:
    import cv2

    way = max(3, round(event.severity * event.parameters["width"] * image.width))
    angle = event.generator(stream.name, "angle", index).uniform(0, np.pi)
    kernel = np.zeros((way, way), np.float32)
    half = (way - 1) / 2 * np.array([np.cos(angle), np.sin(angle)])
    ends: Any = [tuple(np.rint((way - 1) / 2 + sign * half).astype(int).tolist()) for sign in (-1, 1)]
    cv2.line(kernel, ends[0], ends[1], 1.0)
    return dataclasses.replace(image, data=cv2.filter2D(image.data, -1, kernel / kernel.sum()))


def overexpose(stream: Stream, event: Event) -> Change:
    """Open the shutter too long: everything is brighter, and white where the sensor is full."""
    return wrap(stream, event, event.inside(stream), _share(stream, event), partial(_brighter, event))


def _brighter(event: Event, index: int, image: Image) -> Image:
    gain = 2.0 ** (event.severity * event.parameters["stops"])
    return dataclasses.replace(image, data=as_stored(image.data.astype(np.float64) * gain, image))


def _share(stream: Stream, event: Event) -> Any:
    return np.full(len(stream), event.severity)


FAULTS = (
    Fault(
        "blur",
        "pictures are smeared by motion",
        "over a twentieth of their width",
        (Image,),
        blur,
        parameters={"width": 0.05},
        unit="share of the width",
        reasons=("BLUR", "INLIERS"),
    ),
    Fault(
        "overexposure",
        "pictures are too bright, burned white where they were bright",
        "by three stops, eight times the light",
        (Image,),
        overexpose,
        parameters={"stops": 3.0},
        unit="stops",
        reasons=("OVEREXPOSED", "INLIERS"),
    ),
)


GRID = (12, 16)
"""Rows and columns at which the light is worked out; between them it is smooth."""
VISIBLE = 1.0 / 255.0
"""Less than this is no change that 8 bits could show."""
GREY = (0.8, 0.8, 0.82)
"""Light of hazy air."""
WIDE = 1.0
"""Tangent of half the view of a camera that is not calibrated, across: 90 degrees."""


@dataclass(frozen=True, eq=False)
class Veil:
    """The light that comes through to a camera."""

    air: Air
    # origin, rays: (3,) (rows * columns, 3), where the camera is, and where the parts of its picture look,
    # in the vehicle's frame
    origin: Floats
    rays: Floats
    depth: float  # how far the scene is, m
    part: float  # extinction at the camera's wavelength against that of visible light
    seconds: Floats  # (n,), when each image was taken, s after the fault began

    @classmethod
    def of(cls, stream: Stream, event: Event, air: Air, part: float) -> Veil:
        """Return the veil of a camera in such air."""
        T = place_of_sensor(event.recording, stream.frame)
        rays = _rays(event.recording.cameras.get(stream.camera)) @ T[:3, :3].T
        return cls(air, T[:3, 3], rays, event.parameters["depth"], part, event.seconds(stream))

    def transmission(self, seconds: float) -> Floats:
        """Return (rows, columns) the part of the light that comes through."""
        count = len(self.rays)
        met = through(self.air, np.full(count, seconds), self.origin, self.rays)
        return np.exp(-self.part * met.depth(np.full(count, self.depth))).reshape(GRID)

    def taken(self, chosen: Mask) -> Floats:
        """Return (n,) the part of the light that misses in the chosen images, 0 where nobody could see it."""
        result = np.zeros(len(self.seconds))
        for index in np.flatnonzero(chosen).tolist():
            missing = 1.0 - self.transmission(float(self.seconds[index]))
            result[index] = missing.mean() if missing.max() > VISIBLE else 0.0
        return result


def _rays(camera: CameraModel | None) -> Floats:
    """Return unit vectors (rows * columns, 3) in the camera's frame, its lens taken for a pinhole."""
    rows, columns = GRID
    x, y = np.meshgrid(np.linspace(-1, 1, columns) * WIDE, np.linspace(-1, 1, rows) * WIDE * 0.75)
    if camera is not None and camera.K[0, 0] > 0:
        width, height = camera.width or 2 * camera.K[0, 2], camera.height or 2 * camera.K[1, 2]
        u, v = np.meshgrid(np.linspace(0, width - 1, columns), np.linspace(0, height - 1, rows))
        x, y = (u - camera.K[0, 2]) / camera.K[0, 0], (v - camera.K[1, 2]) / camera.K[1, 1]
    rays = np.column_stack([x.ravel(), y.ravel(), np.ones(rows * columns)])
    return rays / np.linalg.norm(rays, axis=1, keepdims=True)


def cover(veil: Veil, colour: tuple[float, float, float], index: int, image: Image) -> Image:
    """Lay the veil over an image."""
    import cv2

    grid = veil.transmission(float(veil.seconds[index])).astype(np.float32)
    return blend(image, cv2.resize(grid, (image.width, image.height)), colour)


def blend(image: Image, transmission: Any, colour: tuple[float, float, float]) -> Image:
    """Return ``J T + A (1 - T)``.

    Parameters
    ----------
    transmission : (h, w) array
    colour : (3,)
        Red, green, blue of the air's light, 0 to 1. An image without colours gets their mean; a thermal one,
        to which the air is as warm as the scene, its own mean.
    """
    pixels = image.data.astype(np.float32)
    light: Any = _light(image, colour)
    plane = np.asarray(transmission, dtype=np.float32)
    T = plane[..., None] if pixels.ndim == 3 else plane
    return dataclasses.replace(image, data=as_stored(pixels * T + light * (1.0 - T), image))


def _light(image: Image, colour: tuple[float, float, float]) -> Any:
    top = white(image)
    if image.mode == "thermal":
        return np.float32(image.data.mean())
    if image.mode not in ("rgb", "rgba", "bgr"):
        return np.float32(top * np.mean(colour))
    channels = list(colour[::-1] if image.mode == "bgr" else colour)
    return np.array(channels + [1.0] * (image.data.shape[2] - 3), dtype=np.float32) * top


def white(image: Image) -> float:
    """Return the value of a pixel that is as bright as can be."""
    if image.data.dtype.kind in "ui":
        return float(np.iinfo(image.data.dtype).max)
    return float(np.nanmax(image.data)) if image.data.size else 1.0


def as_stored(pixels: Any, image: Image) -> Any:
    """Return pixels in the type of an image, cut off where it ends."""
    if image.data.dtype.kind not in "ui":
        return pixels.astype(image.data.dtype)
    return np.clip(np.rint(pixels), 0, white(image)).astype(image.data.dtype)


def hazy(stream: Stream, event: Event) -> Change:
    """Lay the same veil over the whole of every image."""
    light = 1.0 - event.severity * (1.0 - event.parameters["transmission"])
    fraction = np.where(event.inside(stream), 1.0 - light, 0.0)
    return wrap(stream, event, fraction > VISIBLE, fraction, partial(_hazy, light))


def _hazy(light: float, index: int, image: Image) -> Image:
    return blend(image, np.full(image.data.shape[:2], light, np.float32), GREY)


VEIL_FAULTS = (
    Fault(
        "haze",
        "images lose contrast evenly, I = J t + A (1 - t)",
        "a fifth of the light of the scene comes through",
        (Image,),
        hazy,
        parameters={"transmission": 0.2},
        unit="share of the light",
        reasons=("HAZE", "INLIERS"),
    ),
)


FLIPS = 1e-4
"""Part of the bytes that have a wrong bit at severity 1."""
CUT = 0.5
"""Part of the file that is missing at severity 1."""


def flip_bits(
    content: bytes, severity: float, draw: np.random.Generator
) -> tuple[bytes, list[tuple[int, float]]]:
    """Flip one bit in some bytes, at least in one; more severity flips those of less, and others."""
    order = draw.permutation(len(content))
    bits = draw.integers(0, 8, len(content))
    count = min(len(content), math.ceil(severity * FLIPS * len(content)))
    damaged = np.frombuffer(content, np.uint8).copy()
    chosen = np.sort(order[:count])
    damaged[chosen] ^= (1 << bits[chosen]).astype(np.uint8)
    return damaged.tobytes(), [(int(at), 1.0 / len(content)) for at in chosen]


def truncate(
    content: bytes, severity: float, draw: np.random.Generator
) -> tuple[bytes, list[tuple[int, float]]]:
    """Leave the end of a file out."""
    gone = math.ceil(severity * CUT * len(content))
    return content[: len(content) - gone], [(len(content) - gone, gone / len(content))] if gone else []


DAMAGE_FAULTS = (
    Fault(
        "bit_flip",
        "bits of a written file flip",
        "in one byte of ten thousand",
        damage=flip_bits,
        unit="share of the bytes",
    ),
    Fault(
        "truncation",
        "the end of a written file is missing",
        "half of it",
        damage=truncate,
        unit="share of the file",
        reasons=("EARLY_STOP", "NO_DATA"),
    ),
)
