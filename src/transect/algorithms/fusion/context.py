"""Interface between a fusion and its caller: mounts of sensors, trust in each input, and messages.

A node passes its `Context`, a script a `PlainContext`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Protocol

import numpy as np

from transect.base.arrays import Floats
from transect.errors import FrameError
from transect.geometry import se3

from ..transforms import Transforms


class FusionContext(Protocol):
    """What a fusion needs from its caller."""

    @property
    def frames(self) -> Transforms:
        """Mounts of the sensors."""
        ...

    def is_fed(self, port: str, /) -> bool:
        """Return whether samples can arrive at an input."""
        ...

    def trust(self, port: str, t_ns: int, others: Collection[str], /) -> float:
        """Return the divisor of a sample's sigmas; 0 if one of the `others` replaces the input."""
        ...

    def skip(self, reason: str, /) -> None:
        """Count a sample that could not be used."""
        ...

    def leave_out(self, port: str, reason: str, /) -> None:
        """Count a sample that was not used on purpose."""
        ...

    def log(self, message: str, /) -> None:
        """Log a message."""
        ...

    def conclude(self, text: str, /, *, bad: bool = False) -> None:
        """Record a statement about the whole result; `bad` if the result should not be trusted."""
        ...

    def report_noise(self, text: str, /) -> None:
        """Record a statement about the noise model of a sensor."""
        ...


class Mounts:
    """Mounts of sensors on a body: ``T_body_sensor`` (4, 4) by the name of the sensor's frame."""

    def __init__(self, body: str, mounts: Mapping[str, Floats]) -> None:
        self._T_body = {body: np.eye(4), **{name: np.asarray(T) for name, T in mounts.items()}}

    def __contains__(self, frame: str) -> bool:
        return frame in self._T_body

    def lookup(self, target: str, source: str) -> Floats:
        """Return ``T_target_source`` (4, 4)."""
        unknown = [name for name in (target, source) if name not in self._T_body]
        if unknown:
            known = ", ".join(self._T_body)
            raise FrameError(f"there is no frame {unknown[0]!r}", hint=f"known are {known}")
        return se3.invert(self._T_body[target]) @ self._T_body[source]


class PlainContext:
    """Context of a fusion in a script: all sensors are trusted, and messages are stored.

    Parameters
    ----------
    body : str
        Name of the body's frame.
    mounts : mapping of str to (4, 4) array
        ``T_body_sensor`` by the name of each sensor's frame.
    """

    def __init__(self, body: str, mounts: Mapping[str, Floats]) -> None:
        self.frames = Mounts(body, mounts)
        self.messages: list[str] = []  # assumptions, and statements about the result
        self.unused: Counter[str] = Counter()  # number of unused samples by reason

    def is_fed(self, port: str, /) -> bool:
        """Return True: samples can arrive at every input."""
        return True

    def trust(self, port: str, t_ns: int, others: Collection[str], /) -> float:
        """Return 1: every sensor is trusted."""
        return 1.0

    def skip(self, reason: str, /) -> None:
        """Count a sample that could not be used."""
        self.unused[reason] += 1

    def leave_out(self, port: str, reason: str, /) -> None:
        """Count a sample that was not used on purpose."""
        self.unused[f"{port}: {reason}"] += 1

    def log(self, message: str, /) -> None:
        """Store a message."""
        self.messages.append(message)

    def conclude(self, text: str, /, *, bad: bool = False) -> None:
        """Store a statement about the whole result."""
        self.messages.append(f"BAD: {text}" if bad else text)

    def report_noise(self, text: str, /) -> None:
        """Store a statement about the noise model of a sensor."""
        self.messages.append(text)
