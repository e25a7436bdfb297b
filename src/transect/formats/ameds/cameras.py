"""Cameras as the images at hand need them: Interact's calibrations are for images of full size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from transect.formats._images import image_size
from transect.geometry.camera import scale_intrinsics
from transect.recording import Source
from transect.types import CameraModel

from .files import Listed


def cameras_of(
    source: Source, payloads: Sequence[Listed], cameras: Mapping[str, CameraModel]
) -> tuple[dict[str, CameraModel], tuple[str, ...]]:
    """Return the cameras, those of smaller or larger images scaled, and a sentence for each that is other.

    The size of a camera's images is that of its first: all of a recording are alike.
    """
    found, notes = dict(cameras), list[str]()
    for listed in payloads:
        camera = cameras.get(listed.kind.frame)
        size = image_size(source.head(listed.names[0])) if camera else None
        if camera is None or size is None or size == (camera.width, camera.height):
            continue
        sizes = f"images are {size[0]} x {size[1]}, the calibration is for {camera.width} x {camera.height}"
        if _alike(camera, *size):
            found[camera.name] = resized(camera, *size)
            notes.append(f"{camera.name}: {sizes}; it is scaled to them")
        else:
            notes.append(f"{camera.name}: {sizes}, which is another shape; it is left as it is")
    return found, tuple(notes)


def resized(camera: CameraModel, width: int, height: int) -> CameraModel:
    """Return the camera for images of another size, in pixels; its lens stays the same."""
    K = scale_intrinsics(camera.K, width / camera.width, height / camera.height)
    return replace(camera, width=width, height=height, K=K)


def _alike(camera: CameraModel, width: int, height: int) -> bool:
    """Whether a size is the camera's times one factor, to whole pixels."""
    least = max((width - 0.5) / camera.width, (height - 0.5) / camera.height)
    return least <= min((width + 0.5) / camera.width, (height + 0.5) / camera.height)
