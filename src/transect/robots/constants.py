"""The constants of a robot's YAML file, by group and key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transect.errors import TransectError
from transect.recording import Recording, Robot


class Constants:
    """Constants of a robot by group and key; one that is missing is named.

    Parameters
    ----------
    robot : Robot
    model : str
        What they describe, for errors: "four steered wheels".
    example : str
        A YAML file that has them.
    """

    def __init__(self, robot: Robot, model: str, example: str) -> None:
        self.robot, self.model, self.example = robot, model, example

    def __getitem__(self, path: tuple[str, str]) -> Any:
        group, key = path
        values = self.robot.constants.get(group)
        if not isinstance(values, Mapping) or key not in values:
            raise TransectError(
                f"the robot {self.robot.name} does not say {group}.{key}",
                why=f"the model of {self.model} needs it",
                hint=f"copy the block `{group}` of {self.example} and change its numbers",
            )
        return values[key]


def find_parameter(robot: Robot, recording: Recording | None, path: Sequence[str]) -> Any | None:
    """Return a parameter by set and key: the recording's own, else the robot's, else None.

    Both keep theirs under ``parameters``, in `Recording.conditions` and `Robot.constants`.
    """
    group, key = path
    for source in (recording.conditions if recording is not None else {}, robot.constants):
        values = source.get("parameters", {}).get(group, {})
        if key in values:
            return values[key]
    return None
