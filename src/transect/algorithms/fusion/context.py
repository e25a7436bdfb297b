"""What a fusion asks of its caller: mounts of sensors, how far each is trusted, and where messages go.

A node gives its `Context`, a script a `PlainContext`.
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
    """What a fusion asks of its caller."""

    @property
    def frames(self) -> Transforms:
        """How the sensors are mounted."""
        ...

    def is_fed(self, port: str, /) -> bool:
        """Tell whether samples can come from an input."""
        ...

    def trust(self, port: str, t_ns: int, others: Collection[str], /) -> float:
        """Return the number by which sigmas of a sample are divided; 0 if another input replaces it."""
        ...

    def skip(self, reason: str, /) -> None:
        """Count a sample that was of no use."""
        ...

    def leave_out(self, port: str, reason: str, /) -> None:
        """Count a sample that is not used."""
        ...

    def log(self, message: str, /) -> None:
        """Take a message."""
        ...

    def conclude(self, text: str, /, *, bad: bool = False) -> None:
        """Take a statement about the whole result; `bad` if it should not be trusted."""
        ...

    def report_noise(self, text: str, /) -> None:
        """Take a statement about the noise of a sensor that was used."""
        ...


class Mounts:
    """Where sensors are on a body: ``T_body_sensor`` (4, 4) by the name of the sensor's frame."""

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
    """The context of a fusion outside a run: all sensors are trusted, and messages are kept.

    Parameters
    ----------
    body : str
        Name of the body's frame.
    mounts : mapping of str to (4, 4) array
        ``T_body_sensor`` by the name of each sensor's frame.

    Attributes
    ----------
    messages : list of str
        What was assumed, and what was found at the end.
    unused : Counter
        How many samples were not used, by reason.
    """

    def __init__(self, body: str, mounts: Mapping[str, Floats]) -> None:
        self.frames = Mounts(body, mounts)
        self.messages: list[str] = []
        self.unused: Counter[str] = Counter()

    def is_fed(self, port: str, /) -> bool:
        """Return True: everything can come."""
        return True

    def trust(self, port: str, t_ns: int, others: Collection[str], /) -> float:
        """Return 1: every sensor is trusted."""
        return 1.0

    def skip(self, reason: str, /) -> None:
        """Count a sample that was of no use."""
        self.unused[reason] += 1

    def leave_out(self, port: str, reason: str, /) -> None:
        """Count a sample that is not used."""
        self.unused[f"{port}: {reason}"] += 1

    def log(self, message: str, /) -> None:
        """Keep a message."""
        self.messages.append(message)

    def conclude(self, text: str, /, *, bad: bool = False) -> None:
        """Keep a statement about the whole result."""
        self.messages.append(f"BAD: {text}" if bad else text)

    def report_noise(self, text: str, /) -> None:
        """Keep a statement about the noise of a sensor that was used."""
        self.messages.append(text)
