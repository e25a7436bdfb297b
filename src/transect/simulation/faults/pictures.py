"""Pictures that are blurred, or too bright."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np

from transect.recording import Stream
from transect.types import Image

from ._model import Change, Event, Fault
from ._payloads import wrapped
from .haze import as_stored


def blurred(stream: Stream, event: Event) -> Change:
    """Smear every picture along one line, as a bump does while the shutter is open."""
    return wrapped(stream, event, event.inside(stream), _share(stream, event), partial(_smear, stream, event))


def _smear(stream: Stream, event: Event, index: int, image: Image) -> Image:
    import cv2

    way = max(3, round(event.severity * event.parameters["width"] * image.width))
    angle = event.generator(stream.name, "angle", index).uniform(0, np.pi)
    kernel = np.zeros((way, way), np.float32)
    half = (way - 1) / 2 * np.array([np.cos(angle), np.sin(angle)])
    ends: Any = [tuple(np.rint((way - 1) / 2 + sign * half).astype(int).tolist()) for sign in (-1, 1)]
    cv2.line(kernel, ends[0], ends[1], 1.0)
    return dataclasses.replace(image, data=cv2.filter2D(image.data, -1, kernel / kernel.sum()))


def overexposed(stream: Stream, event: Event) -> Change:
    """Open the shutter too long: everything is brighter, and white where the sensor is full."""
    return wrapped(stream, event, event.inside(stream), _share(stream, event), partial(_brighter, event))


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
        blurred,
        parameters={"width": 0.05},
    ),
    Fault(
        "overexposure",
        "pictures are too bright, burned white where they were bright",
        "by three stops, eight times the light",
        (Image,),
        overexposed,
        parameters={"stops": 3.0},
    ),
)
