"""The pictures of a robot's conventions, drawn from the numbers of its YAML.

A user's own YAML is drawn by the model whose constants it has: copy `interact.yaml`, change its numbers, and
the wheels move.
"""

from __future__ import annotations

from importlib import import_module

from transect.draw.robots import Picture
from transect.errors import TransectError, did_you_mean
from transect.recording import Robot

MODELS = {
    "interact": ("platform", "drive", "steer"),
    "weeder": ("wheelbase", "steering_unit", "steering_scale"),
    "argo": ("radar", "laser", "laser_to_visual_camera", "laser_to_ir_camera"),
    "ida": ("parameters", "joints"),
}
"""The models that have pictures, and the constants by which their robots are known."""


def model_of(robot: Robot) -> str:
    """Return the model that describes a robot: that of its name, or the one whose constants it has.

    Raises
    ------
    TransectError
        If there is none.
    """
    if robot.name in MODELS:
        return robot.name
    for model, constants in MODELS.items():
        if all(name in robot.constants for name in constants):
            return model
    raise TransectError(
        f"no model draws the robot {robot.name}",
        why="it has the constants of none: "
        + "; ".join(f"{model} has {', '.join(constants)}" for model, constants in MODELS.items()),
        hint="copy the YAML of the robot most like yours; `transect draw frames` draws any",
    )


def pictures_of(robot: Robot, only: str | None = None) -> list[Picture]:
    """Return the pictures of a robot's conventions, or the one with that name."""
    drawn: list[Picture] = import_module(f"transect.robots._pictures_{model_of(robot)}").pictures(robot)
    names = [picture.name for picture in drawn]
    if only is not None and only not in names:
        raise TransectError(f"the robot {robot.name} has no picture {only!r}", hint=did_you_mean(only, names))
    return [picture for picture in drawn if only in (None, picture.name)]
