"""Outlets: what becomes of a node's result, checked, hashed, and handed on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .digest import PortDigest
from .graph import Part
from .node import describe
from .ports import Port, PortError, is_outputs

Tap = Callable[[int, Any], None]
Emit = Callable[[int, int, Any], None]
"""Called with the wave's number, the time and the value."""


class Channels:
    """The newest sample of every stream and output port; one number each.

    Attributes
    ----------
    values, times, fresh, counts : list
        By channel: newest value, its time (ns), the wave that brought it (0 for none), how many there were.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.index = {name: number for number, name in enumerate(names)}
        self.values: list[Any] = [None] * len(names)
        self.times, self.fresh, self.counts = ([0] * len(names) for _ in range(3))

    def put(self, wave: int, t_ns: int, channel: int, value: Any) -> None:
        """Take a sample."""
        self.values[channel] = value
        self.times[channel] = t_ns
        self.fresh[channel] = wave
        self.counts[channel] += 1

    def freeze(self) -> Any:
        """Return copies of the lists; the values are shared."""
        return [list(part) for part in (self.values, self.times, self.fresh, self.counts)]

    def thaw(self, state: Any) -> None:
        """Take back a state, into the same lists: steps hold them."""
        for part, kept in zip((self.values, self.times, self.fresh, self.counts), state, strict=True):
            part[:] = kept


class Outlet:
    """One output port.

    Attributes
    ----------
    digest : PortDigest
        Of everything emitted.
    taps : list of callable
        Called with (time, value) of everything emitted.
    """

    def __init__(self, part: Part, port: Port, channels: Channels, hashed: bool = True) -> None:
        self.port, self.channels = port, channels
        self.name = f"{part.id}.{port.name}"
        self.channel = channels.index[self.name]
        self.digest = PortDigest(port.type, idle=not hashed)
        self.taps: list[Tap] = []

    def emitter(self) -> Emit:
        """Return the function that emits a value."""
        values, times = self.channels.values, self.channels.times
        fresh, counts = self.channels.fresh, self.channels.counts
        channel, port, taps, update = self.channel, self.port, self.taps, self.digest.update
        expected = port.type if port.shape is None else None  # a shape is looked at every time

        def emit(wave: int, t_ns: int, value: Any) -> None:
            if value.__class__ is not expected and not port.carries(value):
                raise PortError(f"{self.name} cannot give {describe(value)}", why=f"expected {port.expected}")
            update(t_ns, value)
            values[channel] = value
            times[channel] = t_ns
            fresh[channel] = wave
            counts[channel] += 1
            for tap in taps:
                tap(t_ns, value)

        return emit


def emission(part: Part, outlets: Sequence[Outlet]) -> Emit:
    """Return what is done with a result that is not None."""
    if not outlets:
        return _refusal(part)
    emits = {outlet.port.name: outlet.emitter() for outlet in outlets}
    return _bundle(part, emits) if part.node.bundled else next(iter(emits.values()))


def _refusal(part: Part) -> Emit:
    def refuse(wave: int, t_ns: int, value: Any) -> None:
        raise PortError(f"{part.id} returned {describe(value)}", why="it says that it returns nothing")

    return refuse


def _bundle(part: Part, emits: dict[str, Emit]) -> Emit:
    """A field left None emits nothing."""

    def emit_fields(wave: int, t_ns: int, value: Any) -> None:
        if not is_outputs(value.__class__):
            expected = f"expected the outputs {', '.join(emits)}"
            raise PortError(f"{part.id} returned {describe(value)}", why=expected)
        for name, emit in emits.items():
            field = getattr(value, name)
            if field is not None:
                emit(wave, t_ns, field)

    return emit_fields
