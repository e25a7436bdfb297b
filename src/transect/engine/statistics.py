"""Statistics of a run: calls, times, ages, and counts of what happened to every sample.

`RunStatistics` are a table, and plain values.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from transect.base.tables import table_lines

_OCTAVE_COUNT = 64
_STEPS_PER_OCTAVE = 8
"""Buckets per octave: a quantile is known to an eighth of its value."""
SHORT_NS = 4096
"""Times (ns) whose buckets are looked up in a table, for nodes that are called often."""


def bucket_of(value: int) -> int:
    """Return the bucket of a number of 0 or more: up to 15 its own, then eight per octave."""
    k = value.bit_length()
    return (k << 3) + ((value >> (k - 4)) & 7) if k > 4 else value


@cache
def short_buckets() -> bytes:
    """Return `bucket_of` of every number below `SHORT_NS`."""
    return bytes(map(bucket_of, range(SHORT_NS)))


class Histogram:
    """Counts of whole numbers in buckets that grow with them: flat memory, quantiles to one part in eight.

    Attributes
    ----------
    buckets : list of int
        Up to 15 one number each, then eight per octave.
    """

    __slots__ = ("buckets", "largest", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (_OCTAVE_COUNT * _STEPS_PER_OCTAVE)
        self.total = 0
        self.largest = 0

    def add(self, value: int) -> None:
        """Count a number of 0 or more."""
        self.buckets[bucket_of(value)] += 1
        self.total += value
        if value > self.largest:
            self.largest = value

    @property
    def count(self) -> int:
        """How many were added."""
        return sum(self.buckets)

    def freeze(self) -> Any:
        """Return its state."""
        return list(self.buckets), self.total, self.largest

    def thaw(self, state: Any) -> None:
        """Take back a state, into the same list: steps hold it."""
        self.buckets[:], self.total, self.largest = state

    def quantile(self, part: float) -> float:
        """Return the middle of the bucket in which that part of the numbers is reached; NaN without any."""
        wanted, seen = part * self.count, 0
        for index, number in enumerate(self.buckets):
            seen += number
            if number and seen >= wanted:
                return min(float(_middle(index)), float(self.largest))
        return float("nan")


def _middle(bucket: int) -> float:
    """Return the number in the middle of a bucket."""
    k, step = bucket >> 3, bucket & 7
    if bucket < 2 * _STEPS_PER_OCTAVE:
        return float(bucket)
    return (8 + step + 0.5) * 2.0 ** (k - 4)


class NodeCount:
    """Counters of one node.

    Attributes
    ----------
    wall, cpu : Histogram
        Nanoseconds per call; `cpu` of the first sixteen, then of one in 64: asking costs more than a small
        node.
    age : Histogram
        Nanoseconds of recording time between a trigger and the wave in which the node could run on it.
    samples : Counter
        (port, what became of a sample) to how often: used, unpaired, same time, ...
    skipped : Counter
        Why a firing did not happen, or gave nothing: how often.
    """

    __slots__ = ("age", "calls", "cpu", "samples", "skipped", "state_bytes", "wall")

    def __init__(self) -> None:
        self.calls = 0
        self.wall, self.cpu, self.age = Histogram(), Histogram(), Histogram()
        self.samples: Counter[tuple[str, str]] = Counter()
        self.skipped: Counter[str] = Counter()
        self.state_bytes = 0

    def freeze(self) -> Any:
        """Return its state."""
        times = [h.freeze() for h in (self.wall, self.cpu, self.age)]
        return self.calls, times, Counter(self.samples), Counter(self.skipped)

    def thaw(self, state: Any) -> None:
        """Take back a state, into the same counters: inboxes hold them."""
        self.calls, times, samples, skipped = state
        for histogram, kept in zip((self.wall, self.cpu, self.age), times, strict=True):
            histogram.thaw(kept)
        for counter, kept in ((self.samples, samples), (self.skipped, skipped)):
            counter.clear()
            counter.update(kept)


@dataclass(frozen=True)
class NodeStatistics:
    """Costs of one node and counts of its samples, as a run reports them."""

    calls: int
    # Seconds; the quantiles to one part in eight
    wall_p50: float
    wall_p95: float
    wall_max: float
    wall_total: float
    # Seconds of processor time of a call, from the first sixteen and one in 64 of the others
    cpu_p50: float
    cpu_p95: float
    cpu_max: float
    # Seconds of recording time that a trigger waited for its other inputs
    age_p95: float
    age_max: float
    state_bytes: int  # of the arrays and values that it holds at the end
    # By port: what became of the samples that reached it, and how many
    samples: Mapping[str, Mapping[str, int]]
    skipped: Mapping[str, int]  # why it did not run, or gave nothing, and how often

    @staticmethod
    def of(count: NodeCount) -> NodeStatistics:
        """Return what was counted, in seconds."""
        samples: dict[str, dict[str, int]] = {}
        for (port, fate), number in sorted(count.samples.items()):
            samples.setdefault(port, {})[fate] = number
        wall, cpu, age = count.wall, count.cpu, count.age
        return NodeStatistics(
            calls=count.calls,
            wall_p50=wall.quantile(0.5) / 1e9,
            wall_p95=wall.quantile(0.95) / 1e9,
            wall_max=wall.largest / 1e9,
            wall_total=wall.total / 1e9,
            cpu_p50=cpu.quantile(0.5) / 1e9,
            cpu_p95=cpu.quantile(0.95) / 1e9,
            cpu_max=cpu.largest / 1e9,
            age_p95=age.quantile(0.95) / 1e9 if age.count else 0.0,
            age_max=age.largest / 1e9,
            state_bytes=count.state_bytes,
            samples=samples,
            skipped=dict(sorted(count.skipped.items())),
        )


def size_of(value: Any, seen: set[int] | None = None) -> int:
    """Return how many bytes a value holds: arrays by their buffers, containers by their parts."""
    import sys

    seen = set() if seen is None else seen
    if id(value) in seen:
        return 0
    seen.add(id(value))
    size = sys.getsizeof(value, 0)
    if getattr(value, "base", None) is not None and hasattr(value, "nbytes"):
        size += value.nbytes  # a view counts what it shows
    if isinstance(value, Mapping):
        return size + sum(size_of(part, seen) for item in value.items() for part in item)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple | set | frozenset):
        return size + sum(size_of(part, seen) for part in value)  # pyright: ignore[reportUnknownVariableType]
    inside = getattr(value, "__dict__", None)
    return size + (size_of(inside, seen) if isinstance(inside, dict) else 0)


@dataclass(frozen=True)
class RunStatistics:
    """Costs of a run, and counts of what happened to every sample; `str` is a table."""

    nodes: Mapping[str, NodeStatistics]
    # By stream: `samples` recorded, `played`, `late` (older than the reorder horizon), and `lost` where
    # some could not be read
    streams: Mapping[str, Mapping[str, int]]
    # How long the run took, and how much of the recording it played
    wall_s: float
    recorded_s: float
    peak_mb: float  # most memory that the process ever had
    # Noise of sensors as reported by nodes: declared, estimated from the data, or assumed
    noise: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; a number that is not known is null."""
        return _plain(dataclasses.asdict(self))

    @property
    def shares(self) -> dict[str, tuple[float, str]]:
        """By node: fraction of the time spent in nodes (0 to 1), and a label."""
        total = sum(node.wall_total for node in self.nodes.values()) or 1.0
        return {
            name: (node.wall_total / total, f"{_seconds(node.wall_p50)}, {node.wall_total / total:.0%}")
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
        table = table_lines([head, *rows], right=range(1, len(head)))
        return "\n".join([*table, *(f"noise: {text}" for text in self.noise), self.summary()])

    def summary(self) -> str:
        """Return counts of unused samples and the costs of the run, without the nodes."""
        wall, recorded = _digits(self.wall_s), _digits(self.recorded_s)
        times = self.recorded_s / self.wall_s if self.wall_s else 0.0
        speed = f"{_digits(times)}x real time, " if times else ""
        cost = f"{wall} s for {recorded} s recorded, {speed}peak {self.peak_mb:.0f} MB"
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
                others = ", ".join(f"{number} {fate}" for fate, number in unused.items())
                lines.append(f"{name}.{port}: {fates.get('used', 0)} used, {others}")
        lines += [f"{name}: {number} x {reason}" for reason, number in node.skipped.items()]
    return lines


def _digits(number: float) -> str:
    """Return three digits of a number, or all of them before the point: `0.0223`, `1063`."""
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


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
