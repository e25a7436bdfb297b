"""The numbers of the arm: those of a recording's parameter file over those that the SIS prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import TransectError, did_you_mean
from transect.recording import Recording
from transect.robots import load

from .parameter_sets import SETS

Sets = Mapping[str, Mapping[str, Any]]


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
    def printed(cls) -> Parameters:
        """Return what the SIS prints (`ida.yaml`); what its listings lost is missing."""
        return cls((("the SIS", load("ida").constants["parameters"]),))

    @classmethod
    def over_printed(cls, sets: Sets, where: str = "the parameter file") -> Parameters:
        """Return `sets`, and what the SIS prints where they are silent."""
        return cls(((where, sets), *cls.printed().sources))

    @classmethod
    def of(cls, recording: Recording) -> Parameters:
        """Return the parameters of a recording, and what the SIS prints where it has none."""
        sets = recording.conditions.get("parameters", {})
        return cls.over_printed(sets, f"the parameter files of {recording.name}") if sets else cls.printed()

    def numbers(self, set_name: str, key: str) -> NDArray[np.float64]:
        """Return a parameter as an array: () for one number, (4,) for one a joint, (3, 3) for a matrix.

        Raises
        ------
        MissingParameterError
            If no source has it; the error says where it should come from.
        """
        return np.asarray(self._found(set_name, key)[1], dtype=np.float64)

    def number(self, set_name: str, key: str) -> float:
        """Return a parameter that is one number."""
        return float(self.numbers(set_name, key))

    def origin(self, set_name: str, key: str) -> str:
        """Return who gives a parameter: a file, or the SIS."""
        return self._found(set_name, key)[0]

    def has(self, set_name: str, key: str) -> bool:
        """Tell whether some source gives a parameter."""
        return any(key in sets.get(set_name, {}) for _, sets in self.sources)

    def _found(self, set_name: str, key: str) -> tuple[str, Any]:
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
