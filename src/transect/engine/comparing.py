"""Two runs side by side: which port differed first, and when."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transect.base import clocks
from transect.errors import TransectError


@dataclass(frozen=True)
class Trace:
    """Time and checksum of every sample that a port emitted."""

    times: array[int]
    checks: array[int]

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True)
class PortDifference:
    """How a port differs between two runs.

    Attributes
    ----------
    first_ns : int or None
        Time of the first sample that differs; None where the port is in one of the runs only.
    samples : (int, int)
        In this run and the other.
    differing : int
        How many of the samples that both have differ.
    """

    port: str
    first_ns: int | None
    samples: tuple[int, int]
    differing: int


@dataclass(frozen=True)
class Difference:
    """What differs between two runs; false if nothing does. `str` says which port differed first, and when.

    Attributes
    ----------
    ports : tuple of PortDifference
        The first to differ first; those that are equal are left out.
    equal : tuple of str
        Ports with the same samples.
    settings : mapping
        By name of a setting, parameter, version or input: its value in this run and in the other.
    """

    ports: tuple[PortDifference, ...]
    equal: tuple[str, ...]
    settings: Mapping[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])
    clock: str = "utc"

    def __bool__(self) -> bool:
        return bool(self.ports)

    @property
    def first(self) -> PortDifference | None:
        """The port that differed first."""
        return self.ports[0] if self.ports else None

    def __str__(self) -> str:
        equal, differ = len(self.equal), len(self.ports)
        lines = [f"{equal} port{'s' * (equal != 1)} equal, {differ} differ{'s' * (differ == 1)}"]
        lines += [self._line(port) for port in self.ports]
        if self.settings:
            lines.append("what was not the same:")
            lines += [f"  {name}: {here!r}, other {there!r}" for name, (here, there) in self.settings.items()]
        return "\n".join(lines)

    def place(self, port: PortDifference) -> str:
        """Return a port, and the time since when it differs where there is one."""
        if port.first_ns is None:
            return port.port
        return f"{port.port}@{clocks.text_from_ns(port.first_ns, self.clock)} ({port.first_ns} ns)"

    def _line(self, port: PortDifference) -> str:
        here, there = port.samples
        if port.first_ns is None:
            return f"  {port.port}: {here} samples, other {there}"
        when = clocks.text_from_ns(port.first_ns, self.clock)
        return f"  {port.port}: from {when} on; {port.differing} samples differ ({here}, other {there})"


class RunsDifferError(TransectError):
    """Two runs that should be the same are not; `difference` says how."""

    exit_code = 4

    def __init__(self, difference: Difference, golden: str) -> None:
        first = difference.first
        assert first is not None
        super().__init__(
            f"the run is not the same as {golden}: {first.port} differs first",
            where=difference.place(first),
            why=str(difference).replace("\n", "\n         "),
        )
        self.difference = difference


def difference(
    here: Mapping[str, Trace], there: Mapping[str, Trace], settings: Mapping[str, tuple[Any, Any]], clock: str
) -> Difference:
    """Compare the traces of two runs port by port; of ports that differ since one time, causes come first."""
    found: list[PortDifference] = []
    equal: list[str] = []
    none = Trace(array("q"), array("I"))
    for port in dict.fromkeys([*here, *there]):
        one = _compare(port, here.get(port, none), there.get(port, none))
        if one is None and port in here and port in there:
            equal.append(port)
        else:
            found.append(
                one or PortDifference(port, None, (len(here.get(port, none)), len(there.get(port, none))), 0)
            )
    found.sort(key=lambda d: (d.first_ns is None, d.first_ns or 0))
    return Difference(tuple(found), tuple(equal), settings, clock)


def _compare(port: str, here: Trace, there: Trace) -> PortDifference | None:
    common = min(len(here), len(there))
    times = [np.array(trace.times, np.int64) for trace in (here, there)]
    checks = [np.array(trace.checks, np.uint64) for trace in (here, there)]
    unequal = (times[0][:common] != times[1][:common]) | (checks[0][:common] != checks[1][:common])
    if not unequal.any() and len(here) == len(there):
        return None
    first = int(np.argmax(unequal)) if unequal.any() else common
    stamps = [int(t[first]) for t in times if first < len(t)]
    return PortDifference(port, min(stamps), (len(here), len(there)), int(unequal.sum()))


def settings_that_differ(here: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what two configurations do not have in common, by a dotted name."""
    one, other = _flat(here), _flat(there)
    names = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    return {name: (one.get(name), other.get(name)) for name in names}


def _flat(values: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(values, Mapping):
        return {prefix: values}
    flat: dict[str, Any] = {}
    for key, value in values.items():  # pyright: ignore[reportUnknownVariableType]
        flat.update(_flat(value, f"{prefix}.{key}" if prefix else str(key)))  # pyright: ignore[reportUnknownArgumentType]
    return flat
