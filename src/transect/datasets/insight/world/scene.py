"""Images of the camera on the forearm: the ground, the deck with the payloads, and the end of the arm.

Shapes and colours of the lander are invented; the SIS gives only the positions of the payloads on the deck
(PAYLOAD_COL_PARAMS).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.datasets.insight.robot.codes import ToolCode
from transect.formats.shared.file_groups import file_table
from transect.geometry import se3
from transect.recording import Robot, Stream
from transect.recording.arrow import T_NS
from transect.simulation.light import Light
from transect.simulation.randomness import generator
from transect.simulation.raycast import Scene
from transect.simulation.render import render
from transect.simulation.solids import SHAPE_CYLINDER, Solid, Solids, SurfaceMaterial, rod, turned_box
from transect.types import CameraModel, Image

from .arm.model import PAYLOADS
from .site import PAYLOAD_POSITIONS, SITE
from .state import ArmSimulation

CAMERA = "IDC"
SHUTTER_ROWS_BEFORE_END = 10
"""Control cycles between the exposure and the end of the rest."""
GOLD, DARK, WHITE, METAL, PANEL = (
    SurfaceMaterial((0.55, 0.38, 0.12)),
    SurfaceMaterial((0.05, 0.05, 0.06)),
    SurfaceMaterial((0.72, 0.70, 0.66)),
    SurfaceMaterial((0.32, 0.32, 0.33)),
    SurfaceMaterial((0.05, 0.06, 0.12)),
)
DECK_CENTRE = (-0.775, -0.283)
"""x, y in the IDA frame, m: the origin of the lander frame (SIS Table 7)."""
PAYLOAD_SIZES = {"seis": (0.34, 0.34), "wts": (0.68, 0.28), "hp3": (0.28, 0.40)}
"""Width and height of the payloads, m."""
PAYLOAD_LOOKS = {"seis": GOLD, "wts": WHITE, "hp3": METAL}
AFTERNOON_LIGHT = Light(
    sun_elevation=0.95, sun_azimuth=4.1, sky=0.3, sun_colour=(1.0, 0.86, 0.68),
    zenith=(0.62, 0.47, 0.33), horizon=(0.82, 0.66, 0.48), clouds=0.05,
)  # fmt: skip
"""Dust makes the sky of Mars yellowish brown."""


@dataclass(frozen=True, eq=False)
class ForearmCamera:
    """The camera of a simulation, and its exposures."""

    simulation: ArmSimulation
    model: CameraModel  # in the requested image size
    mount: Floats  # (4, 4), from the optical frame to the distal end of the forearm
    seed: int

    @classmethod
    def of(cls, simulation: ArmSimulation, robot: Robot, scale: float, seed: int) -> ForearmCamera:
        """Return the camera with images `scale` times as large as those of the real camera."""
        model = robot.cameras[CAMERA]
        return cls(simulation, resize_camera(model, scale), robot.frames.lookup("Forearm", model.frame), seed)

    @cached_property
    def rows(self) -> list[int]:
        """Rows of the plan in which a recorded picture is taken."""
        plan = self.simulation.plan
        ends = np.searchsorted(plan.step_of_row, np.arange(len(plan.steps)), side="right")
        ends -= 1 + SHUTTER_ROWS_BEFORE_END
        taken = [int(end) for end, step in zip(ends, plan.steps, strict=True) if step.take_picture]
        return [row for row in taken if plan.recorded[row]]

    def pose(self, row: int) -> Floats:
        """``T_world_camera`` (4, 4) of the bent arm, camera x right, y down, z forward."""
        forearm = np.vstack([self.simulation.true.mechanics.forearm[row], [0.0, 0.0, 0.0, 1.0]])
        return self.simulation.site.T_world_payload @ forearm @ self.mount

    def picture(self, row: int) -> Image:
        """Render the image of the camera."""
        scene = Scene(self.simulation.site.terrain, Solids.of(_solids(self.simulation, row)))
        noise = generator(self.seed, CAMERA, "noise", row)
        frame = render(scene, self.model, self.pose(row), AFTERNOON_LIGHT, noise=noise)
        t_ns = int(self.simulation.seen.t_ns[row])
        return Image(frame.image, "rgb", t_ns=t_ns, frame=self.model.frame, camera=self.model)

    def stream(self) -> Stream:
        """Return the pictures, rendered on demand."""
        t_ns = self.simulation.seen.t_ns[np.array(self.rows, dtype=np.int64)]
        by_time = dict(zip(t_ns.tolist(), self.rows, strict=True))

        def load(row: Mapping[str, Any]) -> Image:
            return self.picture(by_time[row[T_NS]])

        table = file_table(t_ns, [f"{CAMERA}_{k:04d}" for k in range(len(self.rows))])
        return Stream(CAMERA, Image, table, clock="sclk", frame=self.model.frame, loader=load, camera=CAMERA)


def resize_camera(model: CameraModel, scale: float) -> CameraModel:
    """Return a camera with `scale` times as many pixels along each side."""
    width, height = max(8, round(model.width * scale)), max(8, round(model.height * scale))
    K = model.K.copy()
    for axis, factor in ((0, width / model.width), (1, height / model.height)):
        K[axis, axis] *= factor
        K[axis, 2] = (K[axis, 2] + 0.5) * factor - 0.5  # the centre of the first pixel is at 0
    return replace(model, width=width, height=height, K=K)


def _solids(simulation: ArmSimulation, row: int) -> Iterator[Solid]:
    T = simulation.site.T_world_payload
    yield from _lander(T)
    for name in PAYLOADS.values():
        yield _payload(simulation, name, row)
    yield from _arm_end(simulation, row)


def _lander(T: Floats) -> Iterator[Solid]:
    """Deck, solar arrays and legs."""
    yield _disc("deck", T, (*DECK_CENTRE, 0.08), 0.78, 0.16, GOLD)
    for side in (-1.0, 1.0):
        yield _disc("array", T, (DECK_CENTRE[0], DECK_CENTRE[1] + 1.95 * side, -0.05), 1.08, 0.02, PANEL)
    for angle in np.deg2rad([90.0, 210.0, 330.0]):
        out = np.array([np.cos(angle), np.sin(angle)])
        top, foot = (
            se3.apply(T, [*(np.array(DECK_CENTRE) + r * out), z])
            for r, z in ((0.6, 0.15), (1.05, SITE.deck_height_m))
        )
        yield rod("leg", top, foot, 0.025, METAL)
    mast = [se3.apply(T, [DECK_CENTRE[0] - 0.3, DECK_CENTRE[1] + 0.4, z]) for z in (0.0, -0.35)]
    yield rod("mast", mast[0], mast[1], 0.03, WHITE)


def _disc(
    kind: str,
    T: Floats,
    centre: tuple[float, float, float],
    radius: float,
    thickness: float,
    look: SurfaceMaterial,
) -> Solid:
    half = np.array([radius, radius, thickness / 2])
    return Solid(kind, SHAPE_CYLINDER, se3.apply(T, np.array(centre)), half, T[:3, :3], look)


def _payload(simulation: ArmSimulation, name: str, row: int) -> Solid:
    """Return a payload at its current position: on the deck, or on the ground after its release."""
    site, plan = simulation.site, simulation.plan
    width, height = PAYLOAD_SIZES[name]
    release = [k for k, step in enumerate(plan.steps) if step.act == f"{name} release"]
    if release and plan.step_of_row[row] >= release[0]:
        x, y = PAYLOAD_POSITIONS[name]
        base = np.array([x, y, site.surface(x, y)])
    else:
        x, y, _ = site.sets["PAYLOAD_COL_PARAMS"][f"{name}_t"]
        base = np.array([x, y, 0.0])
    T = site.T_world_payload
    centre = se3.apply(T, base - height / 2 * site.arm.down)
    if name == "hp3":
        return turned_box(name, centre, [width, width, height], T[:3, :3], PAYLOAD_LOOKS[name])
    return Solid(
        name,
        SHAPE_CYLINDER,
        centre,
        np.array([width / 2, width / 2, height / 2]),
        T[:3, :3],
        PAYLOAD_LOOKS[name],
    )


def _arm_end(simulation: ArmSimulation, row: int) -> Iterator[Solid]:
    """The part of the forearm in front of the camera, and the scoop."""
    arm, T = simulation.site.arm, simulation.site.T_world_payload
    frames = arm.forward_frames(simulation.plan.timeline.q[row : row + 1])
    wrist, direction = frames.origin[4, 0], frames.rotation[3, 0, :, 0]
    yield rod("forearm", se3.apply(T, wrist - 0.45 * direction), se3.apply(T, wrist), 0.025, METAL)
    rotation = frames.rotation[4, 0]
    scoop = wrist + rotation @ (0.5 * arm.tools[ToolCode.SCOOP].offset)
    yield turned_box("scoop", se3.apply(T, scoop), [0.09, 0.07, 0.11], T[:3, :3] @ rotation, DARK)
