"""What Interact's cameras and lidar see: made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from transect.base.clocks import decimal_from_ns
from transect.formats._images import encode_image, file_table
from transect.formats.ameds.files import PAYLOADS, PayloadFiles
from transect.formats.ameds.reading import resized
from transect.recording import Parsed, Stream
from transect.types import CameraModel, Image, PointCloud

from ...lidar import VLP_32C, Shots, revolution, scan
from ...randomness import generator
from ...render import Frame, pixel_rays, render
from .state import START_NS, State
from .tables import elapsed

CAMERA_RATE = 30.0
"""Hz, Table 7 (15 for MainCam in Table 1, see errata)."""
NOT_MADE = "MainAuxCam/Projected"
"""Images with drawings in them, made from the others (Figure 5): not simulated."""


def cameras(state: State) -> dict[str, CameraModel]:
    """Return the cameras at the scale of the images."""
    return {name: _scale(model, state.options.scale) for name, model in state.rover.robot.cameras.items()}


def streams(state: State) -> Iterator[Stream]:
    """Return the streams of images and clouds."""
    models = cameras(state)
    for kind in PAYLOADS:
        if kind.type is Image and kind.stream != NOT_MADE:
            yield _stream(kind, state, CAMERA_RATE, partial(_image, state, models[kind.frame]))
        elif kind.type is PointCloud:
            yield _stream(kind, state, VLP_32C.rate, partial(_cloud, state, _shots(state)))


def depth_files(state: State) -> dict[str, Callable[[], bytes]]:
    """Return the depth of every image, along the optical axis in m, as float TIFF by name."""
    return {
        f"depth/{name}_{decimal_from_ns(t)}.tiff": partial(_depth, state, model, t)
        for name, model in cameras(state).items()
        for t in state.times(CAMERA_RATE).tolist()
    }


def frame(state: State, camera: CameraModel, t_ns: int) -> Frame:
    """Return what a camera sees at a time, and how far it is."""
    platform = state.motion.at([t_ns])
    seconds = elapsed(np.array([t_ns]))
    pose = state.rover.camera_in_world(camera.name.removesuffix("Cam"), platform, seconds)[0]
    noise = generator(state.seed, camera.name, "noise", t_ns - START_NS)
    return render(state.scene, camera, pose, state.light, t=float(seconds[0]), noise=noise)


def _stream(kind: PayloadFiles, state: State, rate: float, make: Callable[[int], Any]) -> Stream:
    t_ns = state.times(rate)
    if kind.type is PointCloud:
        # A scan begins at its stamp, and needs the motion until its end.
        t_ns = t_ns[:-1]

    def load(row: Mapping[str, Any]) -> Any:
        return make(int(row["t_ns"]))

    return Stream(
        kind.stream,
        kind.type,
        Parsed(file_table(t_ns, [f"{kind.stream}/{i}" for i in range(len(t_ns))])),
        role=kind.role,
        tag=kind.tag,
        frame=kind.frame,
        camera=kind.frame if kind.type is Image else "",
        loader=load,
    )


def _image(state: State, camera: CameraModel, t_ns: int) -> Image:
    # Table 4 describes MainCam's lens only up to where its polynomial folds: the corners stay black.
    seen = np.isfinite(pixel_rays(camera)[:, 0]).reshape(camera.height, camera.width)
    pixels = frame(state, camera, t_ns).image
    return Image(pixels, "rgb", t_ns=t_ns, frame=camera.frame, camera=camera, valid=seen)


def _depth(state: State, camera: CameraModel, t_ns: int) -> bytes:
    return encode_image(Image(frame(state, camera, t_ns).depth), ".tiff")


def _shots(state: State) -> Shots:
    """A revolution; images at a tenth of their size go with a tenth of the firings."""
    return revolution(VLP_32C, every=max(round(1 / state.options.scale), 1))


def _cloud(state: State, shots: Shots, t_ns: int) -> PointCloud:
    cloud = scan(
        state.scene,
        state.motion,
        state.rover.in_platform("Lidar"),
        t_ns,
        VLP_32C,
        shots,
        state.reflectance,
        generator(state.seed, "Lidar", "noise", t_ns - START_NS),
        START_NS,
    )
    return replace(cloud, frame="Lidar")


def _scale(camera: CameraModel, scale: float) -> CameraModel:
    return resized(camera, round(camera.width * scale), round(camera.height * scale))
