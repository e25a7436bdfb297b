"""What a run reports of itself: statistics as a table and as plain values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transect.base.tables import table_lines

from .statistics import NodeStatistics


@dataclass(frozen=True)
class RunStatistics:
    """What a run cost, and what became of every sample; `str` is a table.

    Attributes
    ----------
    nodes : dict of str to NodeStatistics
    streams : dict of str to dict
        By stream: `samples` recorded, `played`, `late` (older than the reorder horizon), and `lost` where
        some could not be read.
    wall_s, recorded_s : float
        How long the run took, and how much of the recording it played.
    peak_mb : float
        Most memory that the process ever had.
    """

    nodes: Mapping[str, NodeStatistics]
    streams: Mapping[str, Mapping[str, int]]
    wall_s: float
    recorded_s: float
    peak_mb: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; a number that is not known is null."""
        return _plain(dataclasses.asdict(self))

    @property
    def shares(self) -> dict[str, tuple[float, str]]:
        """By node, its share of the time spent in nodes (0 to 1), and that in words."""
        whole = sum(node.wall_total for node in self.nodes.values()) or 1.0
        return {
            name: (node.wall_total / whole, f"{_seconds(node.wall_p50)}, {node.wall_total / whole:.0%}")
            for name, node in self.nodes.items()
        }

    def __str__(self) -> str:
        head = ("node", "calls", "wall p50", "p95", "max", "cpu p50", "share", "waited", "state")
        rows = [
            (
                name,
                f"{node.calls}",
                *(_seconds(s) for s in (node.wall_p50, node.wall_p95, node.wall_max, node.cpu_p50)),
                f"{self.shares[name][0]:.0%}",
                _seconds(node.age_max) if node.age_max else "-",
                _bytes(node.state_bytes),
            )
            for name, node in self.nodes.items()
        ]
        return "\n".join([*table_lines([head, *rows], right=range(1, len(head))), self.summary()])

    def summary(self) -> str:
        """Return what became of samples that were not used, and what the run cost, without the nodes."""
        speed = f"{self.recorded_s / self.wall_s:.3g}x real time, " if self.wall_s and self.recorded_s else ""
        cost = f"{self.wall_s:.3g} s for {self.recorded_s:.3g} s recorded, {speed}peak {self.peak_mb:.0f} MB"
        return "\n".join([*_fates(self), cost])


def _fates(statistics: RunStatistics) -> list[str]:
    """One line for each port or stream that did not use everything, and each reason to skip."""
    lines: list[str] = []
    for name, counts in statistics.streams.items():
        if counts.get("late"):
            lines.append(f"{name}: {counts['late']} of {counts['samples']} samples came too late")
        if counts.get("lost"):
            lines.append(f"{name}: {counts['lost']} of {counts['samples']} samples could not be read")
    for name, node in statistics.nodes.items():
        for port, fates in node.samples.items():
            unused = {fate: number for fate, number in fates.items() if fate != "used"}
            if unused:
                said = ", ".join(f"{number} {fate}" for fate, number in unused.items())
                lines.append(f"{name}.{port}: {fates.get('used', 0)} used, {said}")
        lines += [f"{name}: {number} x {reason}" for reason, number in node.skipped.items()]
    return lines


def _seconds(value: float) -> str:
    """Return a duration with a unit that suits it."""
    if math.isnan(value):
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.0f} ns"


def _bytes(value: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value} B"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return None if isinstance(value, float) and math.isnan(value) else value
