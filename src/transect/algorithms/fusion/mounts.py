"""Body frame and mounts of sensors in the frames of a recording, and the assumptions made for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats
from transect.errors import FrameError
from transect.types import Odometry, Pose

from .context import FusionContext

BODY_FRAMES = ("Platform", "base_link", "base_footprint", "Body")
"""Names of a body's frame, in the order of preference."""
UNNAMED_BODY = "body"
ANTENNA_FRAMES = ("gps", "antenna", "gnss", "Origin")
"""Frames of an antenna; Interact's receiver is at Origin."""
FLU_FROM_FRD = np.diag([1.0, -1.0, -1.0, 1.0])
"""Transforms points of x forward, y right, z down to x forward, y left, z up."""
T_FLU_BODY = {"Body": FLU_FROM_FRD}
"""Of body frames with other axes (the Argo's, Marulan data sets)."""


class Assumptions:
    """Assumptions about sensors, a sentence each, logged when they are made and listed at the end."""

    def __init__(self) -> None:
        self.notes: dict[str, None] = {}  # in the order in which they were made
        self.noise_notes: dict[str, str] = {}  # input by sentence
        self.declared_fix_stds: list[float] = []  # horizontal sigmas of fixes that state them, m
        self.undeclared_inputs: dict[str, None] = {}  # motion sensors and IMU without covariances

    def note(self, ctx: FusionContext, text: str) -> None:
        """Add an assumption, and log it the first time."""
        if text not in self.notes:
            self.notes[text] = None
            ctx.log(text)

    def note_noise(self, ctx: FusionContext, port: str, text: str) -> None:
        """Add an assumption on the noise or the use of an input, and log it the first time."""
        if text not in self.noise_notes:
            self.noise_notes[text] = port
            ctx.log(text)

    def describe_noise(self, estimated: Sequence[str]) -> list[str]:
        """Return the noise of each sensor: `estimated` sentences first, then stated and assumed noise."""
        estimated_ports = {each.partition(":")[0] for each in estimated}
        sentences = [text for text, port in self.noise_notes.items() if port not in estimated_ports]
        if self.declared_fix_stds and "fix" not in estimated_ports:
            sigma = float(np.median(self.declared_fix_stds))
            sentences.append(f"fix: standard deviation {sigma:.2g} m horizontally (median), as declared")
        if self.undeclared_inputs:
            names = ", ".join(self.undeclared_inputs)
            sentences.append(f"{names}: not declared in the data; defaults are assumed")
        return [*estimated, *sentences]


class SensorMounts:
    """Finds the body's frame and the mounts of sensors on it, in axes of x forward, y left, z up.

    Parameters
    ----------
    body : str
        Frame of the body; "" for the first of `BODY_FRAMES` that the recording has.
    antenna : str
        Frame of the antenna; "" for the fix's own, or the first of `ANTENNA_FRAMES`.
    """

    def __init__(self, body: str, antenna: str, assumptions: Assumptions) -> None:
        self.body, self.antenna, self.assumptions = body, antenna, assumptions
        self._mounts: dict[str, Floats | None] = {}

    def find_body(self, ctx: FusionContext, tracks: Sequence[Odometry | Pose]) -> None:
        """Choose the body's frame, unless it is known, by the frames and the child of an odometry."""
        if self.body:
            return
        known = [name for name in BODY_FRAMES if name in ctx.frames]
        child = next((each.child for each in tracks if each.child), "")
        if child or known:
            self.body = child if child and child not in ctx.frames else (known or [child])[0]
        elif tracks:
            self.body = UNNAMED_BODY
            text = "no frame names the body: the axes of the odometry are assumed to be the body's"
            self.assumptions.note(ctx, text)

    def find(self, ctx: FusionContext, frame: str) -> Floats | None:
        """Return T_body_sensor (4, 4), None if it is unknown."""
        if frame not in self._mounts:
            try:
                T_body_sensor = np.eye(4) if frame == self.body else ctx.frames.lookup(self.body, frame)
            except FrameError:
                self._mounts[frame] = None
            else:
                self._mounts[frame] = T_FLU_BODY.get(self.body, np.eye(4)) @ T_body_sensor
        return self._mounts[frame]

    def assume_body_axes(self, frame: str) -> Floats:
        """Assume that a sensor has the axes and the origin of the body, and return its mount."""
        mount = self._mounts[frame] = np.eye(4)
        return mount

    def lever_arm(self, ctx: FusionContext, frames: Sequence[str]) -> Floats:
        """Return the antenna's position on the body (3,) by the first known frame; 0 without one."""
        for frame in frames:
            if frame and (mount := self.find(ctx, frame)) is not None:
                return mount[:3, 3]
        named = next((frame for frame in frames if frame), "the antenna")
        body = self.body or "the body"
        text = f"the position of {named} on {body} is unknown: it is assumed at the origin"
        self.assumptions.note(ctx, text)
        return np.zeros(3)
