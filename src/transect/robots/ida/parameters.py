"""The numbers of the arm: those of a recording's parameter file over those that the SIS prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import TransectError, did_you_mean
from transect.recording import Recording, Robot
from transect.robots import load

from .parameter_sets import SETS

Sets = Mapping[str, Mapping[str, Any]]

FITTED = "a fit to via.q and via.x of the SIS (invented)"
"""Who gives the numbers of `Parameters.with_fitted`."""


class MissingParameterError(TransectError, LookupError):
    """A parameter that neither the file nor the SIS gives."""


@dataclass(frozen=True)
class Parameters:
    """Parameter sets in the order in which they are asked; SI, so currents are amperes.

    Attributes
    ----------
    sources : sequence of (str, sets)
        Who says so, and what: a file's own sets first, those of the SIS after them.
    """

    sources: Sequence[tuple[str, Sets]]

    @classmethod
    def printed(cls, robot: Robot | None = None) -> Parameters:
        """Return what the SIS prints (`ida.yaml`), or a user's copy of it, without what its listings lost."""
        if robot is None or "parameters" not in robot.constants:
            return cls((("the SIS", load("ida").constants["parameters"]),))
        who = "the SIS" if robot.name == "ida" else f"the robot {robot.name}"
        return cls(((who, robot.constants["parameters"]),))

    @classmethod
    def over_printed(
        cls, sets: Sets, where: str = "the parameter file", robot: Robot | None = None
    ) -> Parameters:
        """Return `sets`, and what the SIS (or a user's copy of the robot) prints where they are silent."""
        return cls(((where, sets), *cls.printed(robot).sources))

    @classmethod
    def of(cls, recording: Recording) -> Parameters:
        """Return the parameters of a recording, and what the SIS prints where it has none."""
        sets, robot = recording.conditions.get("parameters", {}), recording.robot
        if not sets:
            return cls.printed(robot)
        return cls.over_printed(sets, f"the parameter files of {recording.name}", robot)

    def with_fitted(self) -> Parameters:
        """Return these, and after all others a place of the grapple that fits one pose which the SIS prints.

        The SIS lost `x_grapple_attach` and `dist_grapple`, and one pose leaves one number free (taken as 0),
        so they are never used unless asked for; `origin` of these two is then `FITTED`.
        """
        fitted = {key: value for key, value in load("ida").constants["fitted"].items() if key != "invented"}
        return Parameters((*self.sources, (FITTED, {"RA_ARM_PARAMS": fitted})))

    def numbers(self, set_name: str, key: str) -> NDArray[np.float64]:
        """Return a parameter as an array: () for one number, (4,) for one a joint, (3, 3) for a matrix.

        Raises
        ------
        MissingParameterError
            If no source has it; the error says where it should come from.
        """
        return np.asarray(self._find(set_name, key)[1], dtype=np.float64)

    def number(self, set_name: str, key: str) -> float:
        """Return a parameter that is one number."""
        return float(self.numbers(set_name, key))

    def origin(self, set_name: str, key: str) -> str:
        """Return who gives a parameter: a file, or the SIS."""
        return self._find(set_name, key)[0]

    def has(self, set_name: str, key: str) -> bool:
        """Tell whether some source gives a parameter."""
        return any(key in sets.get(set_name, {}) for _, sets in self.sources)

    def _find(self, set_name: str, key: str) -> tuple[str, Any]:
        for who, sets in self.sources:
            if key in (values := sets.get(set_name, {})):
                return who, values[key]
        raise _missing(set_name, key, [who for who, _ in self.sources])


def _missing(set_name: str, key: str, asked: Sequence[str]) -> MissingParameterError:
    known = {parameter.name: parameter for parameter in SETS.get(set_name, ())}
    if set_name not in SETS:
        return MissingParameterError(
            f"there is no parameter set {set_name}", hint=did_you_mean(set_name, SETS)
        )
    if key not in known:
        return MissingParameterError(f"{set_name} has no parameter {key}", hint=did_you_mean(key, known))
    parameter = known[key]
    size = " or ".join(map(str, parameter.sizes))
    return MissingParameterError(
        f"{set_name} lacks {key}",
        why=f"neither of {', '.join(asked)} gives it" if len(asked) > 1 else f"{asked[0]} does not give it",
        hint=f"put {key} ({size} numbers{f', {parameter.unit}' if parameter.unit else ''}) under "
        f"'Parameter Set: {set_name}' in a parameter file beside the data (SIS 5.1.3)",
    )
