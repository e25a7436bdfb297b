"""Motion blur, overexposure and haze of images, and damaged files.

Haze follows ``I = J T + A (1 - T)``: J is the image in clear air, T the transmission, A the airlight. The
depth of the scene is not known: it is assumed to be the parameter `depth`, 15 m, for all pixels.
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

from .air import Air, pose_of_sensor, through
from .model import Change, Event, Fault
from .samples import wrap


def blur(stream: Stream, event: Event) -> Change:
    """Blur every image along a line, as by a bump during the exposure."""
    fraction = _severities(stream, event)
    return wrap(stream, event, event.inside(stream), fraction, partial(_blur_image, stream, event))


def _blur_image(stream: Stream, event: Event, index: int, image: Image) -> Image:
    import cv2

    size = max(3, round(event.severity * event.parameters["width"] * image.width))
    angle = event.generator(stream.name, "angle", index).uniform(0, np.pi)
    kernel = np.zeros((size, size), np.float32)
    half = (size - 1) / 2 * np.array([np.cos(angle), np.sin(angle)])
    ends: Any = [tuple(np.rint((size - 1) / 2 + sign * half).astype(int).tolist()) for sign in (-1, 1)]
    cv2.line(kernel, ends[0], ends[1], 1.0)
    return dataclasses.replace(image, data=cv2.filter2D(image.data, -1, kernel / kernel.sum()))


def overexpose(stream: Stream, event: Event) -> Change:
    """Increase the exposure; pixels are white where the sensor saturates."""
    return wrap(stream, event, event.inside(stream), _severities(stream, event), partial(_brighten, event))


def _brighten(event: Event, index: int, image: Image) -> Image:
    gain = 2.0 ** (event.severity * event.parameters["stops"])
    return dataclasses.replace(image, data=as_stored(image.data.astype(np.float64) * gain, image))


def _severities(stream: Stream, event: Event) -> Any:
    return np.full(len(stream), event.severity)


FAULTS = (
    Fault(
        "blur",
        "images have motion blur",
        "over a twentieth of their width",
        (Image,),
        blur,
        parameters={"width": 0.05},
        unit="fraction of the width",
        reasons=("BLUR", "INLIERS"),
    ),
    Fault(
        "overexposure",
        "images are overexposed, bright parts are saturated",
        "by three stops, eight times the light",
        (Image,),
        overexpose,
        parameters={"stops": 3.0},
        unit="stops",
        reasons=("OVEREXPOSED", "INLIERS"),
    ),
)


TRANSMISSION_GRID = (12, 16)
"""Rows and columns of the grid of transmissions, which are interpolated in between."""
MIN_VISIBLE_LOSS = 1.0 / 255.0
"""A smaller loss of light is not visible in 8 bits."""
HAZE_COLOUR = (0.8, 0.8, 0.82)


@dataclass(frozen=True, eq=False)
class CameraTransmission:
    """The transmission of air in front of a camera."""

    air: Air
    # (3,), (rows * columns, 3): position of the camera and directions of a grid of pixels, in the vehicle's
    # frame
    origin: Floats
    rays: Floats
    depth: float  # of the scene, m
    extinction_ratio: float  # extinction at the camera's wavelength relative to that of visible light
    seconds: Floats  # (n,), time of each image, s after the start of the fault

    @classmethod
    def of(cls, stream: Stream, event: Event, air: Air, extinction_ratio: float) -> CameraTransmission:
        """Return the transmission of air in front of a stream's camera."""
        T = pose_of_sensor(event.recording, stream.frame)
        rays = _rays(event.recording.cameras.get(stream.camera)) @ T[:3, :3].T
        depth, seconds = event.parameters["depth"], event.seconds(stream)
        return cls(air, T[:3, 3], rays, depth, extinction_ratio, seconds)

    def transmission(self, seconds: float) -> Floats:
        """Return the transmission (rows, columns) of the grid of pixels."""
        count = len(self.rays)
        paths = through(self.air, np.full(count, seconds), self.origin, self.rays)
        return np.exp(-self.extinction_ratio * paths.depth(np.full(count, self.depth))).reshape(
            TRANSMISSION_GRID
        )

    def losses(self, chosen: Mask) -> Floats:
        """Return the mean loss of light (n,) of the chosen images, 0 where it is not visible."""
        result = np.zeros(len(self.seconds))
        for index in np.flatnonzero(chosen).tolist():
            loss = 1.0 - self.transmission(float(self.seconds[index]))
            result[index] = loss.mean() if loss.max() > MIN_VISIBLE_LOSS else 0.0
        return result


def _rays(camera: CameraModel | None) -> Floats:
    """Return unit vectors (rows * columns, 3) in the camera's frame, for a pinhole camera.

    A camera without calibration has a horizontal field of view of 90 degrees.
    """
    rows, columns = TRANSMISSION_GRID
    x, y = np.meshgrid(np.linspace(-1, 1, columns), np.linspace(-1, 1, rows) * 0.75)
    if camera is not None and camera.K[0, 0] > 0:
        width, height = camera.width or 2 * camera.K[0, 2], camera.height or 2 * camera.K[1, 2]
        u, v = np.meshgrid(np.linspace(0, width - 1, columns), np.linspace(0, height - 1, rows))
        x, y = (u - camera.K[0, 2]) / camera.K[0, 0], (v - camera.K[1, 2]) / camera.K[1, 1]
    rays = np.column_stack([x.ravel(), y.ravel(), np.ones(rows * columns)])
    return rays / np.linalg.norm(rays, axis=1, keepdims=True)


def add_airlight(
    veil: CameraTransmission, colour: tuple[float, float, float], index: int, image: Image
) -> Image:
    """Blend an image with the light of the air by its transmission."""
    import cv2

    grid = veil.transmission(float(veil.seconds[index])).astype(np.float32)
    return blend(image, cv2.resize(grid, (image.width, image.height)), colour)


def blend(image: Image, transmission: Any, colour: tuple[float, float, float]) -> Image:
    """Return ``J T + A (1 - T)``.

    Parameters
    ----------
    transmission : (h, w) array
    colour : (3,)
        Red, green, blue of the airlight, 0 to 1. For a grey image their mean is used; for a thermal one,
        where the air is as warm as the scene, the mean of the image.
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
    """Return the largest pixel value."""
    if image.data.dtype.kind in "ui":
        return float(np.iinfo(image.data.dtype).max)
    return float(np.nanmax(image.data)) if image.data.size else 1.0


def as_stored(pixels: Any, image: Image) -> Any:
    """Convert pixels to the type of an image, clipped to its range."""
    if image.data.dtype.kind not in "ui":
        return pixels.astype(image.data.dtype)
    return np.clip(np.rint(pixels), 0, white(image)).astype(image.data.dtype)


def hazy(stream: Stream, event: Event) -> Change:
    """Apply the same transmission to all pixels of all images."""
    light = 1.0 - event.severity * (1.0 - event.parameters["transmission"])
    fraction = np.where(event.inside(stream), 1.0 - light, 0.0)
    return wrap(stream, event, fraction > MIN_VISIBLE_LOSS, fraction, partial(_add_haze, light))


def _add_haze(light: float, index: int, image: Image) -> Image:
    return blend(image, np.full(image.data.shape[:2], light, np.float32), HAZE_COLOUR)


VEIL_FAULTS = (
    Fault(
        "haze",
        "images lose contrast uniformly, I = J t + A (1 - t)",
        "a transmission of one fifth",
        (Image,),
        hazy,
        parameters={"transmission": 0.2},
        unit="fraction of the light",
        reasons=("HAZE", "INLIERS"),
    ),
)


def flip_bits(
    content: bytes, severity: float, draw: np.random.Generator
) -> tuple[bytes, list[tuple[int, float]]]:
    """Flip one bit in up to 0.01 % of the bytes, at least in one; a higher severity flips a superset."""
    order = draw.permutation(len(content))
    bits = draw.integers(0, 8, len(content))
    count = min(len(content), math.ceil(severity * 1e-4 * len(content)))
    damaged = np.frombuffer(content, np.uint8).copy()
    chosen = np.sort(order[:count])
    damaged[chosen] ^= (1 << bits[chosen]).astype(np.uint8)
    return damaged.tobytes(), [(int(at), 1.0 / len(content)) for at in chosen]


def truncate(
    content: bytes, severity: float, draw: np.random.Generator
) -> tuple[bytes, list[tuple[int, float]]]:
    """Remove up to half of a file at its end."""
    removed = math.ceil(severity * 0.5 * len(content))
    kept = len(content) - removed
    return content[:kept], [(kept, removed / len(content))] if removed else []


DAMAGE_FAULTS = (
    Fault(
        "bit_flip",
        "bits of a written file flip",
        "in one byte of ten thousand",
        damage=flip_bits,
        unit="fraction of the bytes",
    ),
    Fault(
        "truncation",
        "the end of a written file is missing",
        "half of it",
        damage=truncate,
        unit="fraction of the file",
        reasons=("EARLY_STOP", "NO_DATA"),
    ),
)
