"""Operational modes: which compounds are active, and how sensors are set.

CDFF's third function of an Orchestrator: "interface with the sensors' instrument control unit to configure a
limited set of operational modes and sensor-specific parameters".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from transect.errors import UsageError, did_you_mean

from .lifecycle import ManagedCompound, State


class Instrument(Protocol):
    """A sensor with settings: a driver, or a simulated sensor."""

    @property
    def settings(self) -> Mapping[str, float]:
        """The current values: `rate` in Hz, `exposure` in s, ..."""
        ...

    def change(self, setting: str, value: float) -> None:
        """Change a setting; raise a UsageError if the sensor does not support it."""
        ...


@dataclass(frozen=True)
class Mode:
    """The active compounds and the settings of instruments in one phase of operation."""

    active: tuple[str, ...] = ()  # names of the compounds that get samples
    # Settings by instrument
    instruments: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])


class ModeController:
    """Compounds and instruments of a robot that drives, and its current mode.

    Parameters
    ----------
    units : mapping of str to ManagedCompound
        By the names that modes use; unconfigured ones are configured.
    instruments : mapping of str to Instrument
    modes : mapping of str to Mode
    wires : mapping of str to sequence of (str, str)
        By stream: the units and inputs that get its samples.
    """

    def __init__(
        self,
        units: Mapping[str, ManagedCompound],
        instruments: Mapping[str, Instrument],
        modes: Mapping[str, Mode],
        wires: Mapping[str, tuple[tuple[str, str], ...]],
    ) -> None:
        self.units, self.instruments, self.modes, self.wires = units, instruments, modes, wires
        self.mode = ""
        _refuse_unknown("unit", (name for mode in modes.values() for name in mode.active), units)
        _refuse_unknown(
            "instrument", (name for mode in modes.values() for name in mode.instruments), instruments
        )
        _refuse_unknown("unit", (unit for each in wires.values() for unit, _ in each), units)
        for unit in units.values():
            if unit.state == "UNCONFIGURED":
                unit.configure()

    @property
    def states(self) -> dict[str, State]:
        """By unit."""
        return {name: unit.state for name, unit in self.units.items()}

    def set_mode(self, name: str) -> None:
        """Set the instruments first, then deactivate and activate units; a failed one stays FAILED."""
        if name not in self.modes:
            raise UsageError(f"there is no mode {name!r}", hint=did_you_mean(name, self.modes))
        mode = self.modes[name]
        for instrument, settings in mode.instruments.items():
            for setting, value in settings.items():
                self.instruments[instrument].change(setting, value)
        for key, unit in self.units.items():
            if unit.state == "ACTIVE" and key not in mode.active:
                unit.deactivate()
            elif unit.state in ("CONFIGURED", "INACTIVE") and key in mode.active:
                unit.activate()
        self.mode = name

    def push(self, stream: str, t_ns: int, value: Any) -> int:
        """Push a sample of a stream to the active units; return how many accepted it."""
        return sum(self.units[unit].push(port, t_ns, value) for unit, port in self.wires.get(stream, ()))

    def finish(self) -> None:
        """Process all pushed samples."""
        for unit in self.units.values():
            unit.play()


def _refuse_unknown(what: str, names: Any, known: Mapping[str, Any]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"there is no {what} {name!r}", hint=did_you_mean(name, known))
