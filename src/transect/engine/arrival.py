"""Choice of the times by which streams are played: sample times, or log times if stamps are unreliable.

Samples arrive in order of their log times. Stamps that go back in that order come from one of two causes. A
message was delayed and overtaken: its stamp is right, and the order of stamps is the better one. Or the clock
is noisy: the order of arrival is the better one. The data decide. In the right order a body moves steadily,
so that the path through its poses is shorter; a sensor without poses has a period: its intervals vary less.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import robust, rotations
from transect.recording import Parsed, Stream, arrow
from transect.recording.arrow import LOG_NS, T_NS
from transect.recording.stream import Row

STAMP_NS = "stamp_ns"
"""Column with the sample times of a stream that is played by its log times."""
MIN_BACKWARD_RATIO = 0.01
"""A smaller ratio of backward stamps is caused by single delayed messages."""
MIN_RATIO = 1.05
"""Ratio of path lengths, or of interval spreads, by stamps and by arrival, from which on stamps are noisy."""
MAX_LATE_RATIO = 0.2
"""Ratio of samples beyond the reorder horizon that are ignored as outliers."""
TURN_RADIUS_M = 0.5
"""Metres of path per radian of rotation: a robot may also turn in place."""
_QUATERNION = ("qx", "qy", "qz", "qw")


def describe_noisy_stamps(streams: Sequence[Stream], reorder_ns: int = 0) -> str:
    """Return why streams should be played by their log times; empty if sample times are reliable.

    All streams must have log times, as they have to stay together. Poses decide where there are any.

    Parameters
    ----------
    reorder_ns : int
        The reorder horizon; single later samples are ignored.
    """
    timed = [stream for stream in streams if not stream.meta.get("timeless") and len(stream) > 2]
    if not timed or any(stream.log_ns is None for stream in timed):
        return ""
    orders = [_Order.of(stream, reorder_ns) for stream in timed]
    if frozen := next((each for each in orders if each.is_frozen), None):
        return f"most stamps of {frozen.stream.name} are equal to the one before"
    disordered = [each for each in orders if each.backward_ratio >= MIN_BACKWARD_RATIO]
    judged = [(each, each.path_ratio()) for each in disordered]
    moving = [(each, ratio) for each, ratio in judged if ratio is not None]
    for each, ratio in moving:
        if ratio >= MIN_RATIO:
            return f"{each.describe()}, and in their order the path is {ratio:.2g} times as long"
    for each in () if moving else disordered:
        if (ratio := each.interval_ratio()) >= MIN_RATIO:
            return f"{each.describe()}, and in their order intervals vary {ratio:.2g} times as much"
    return ""


def play_by_log_times(stream: Stream) -> Stream:
    """Return a stream whose samples are stamped with their log times; sample times stay as `stamp_ns`."""
    if stream.log_ns is None:
        return stream
    return stream.replace(
        source=partial(_stamp_table, stream),
        loader=partial(_load_stamped, stream.loader) if stream.loader else None,
    )


def _stamp_table(stream: Stream) -> Parsed:
    table, stamps = stream.table, arrow.from_numpy(stream.t_ns)
    at = table.column_names.index(T_NS)
    table = table.set_column(at, table.schema.field(at), table.column(LOG_NS))
    field = arrow.field_with_unit(STAMP_NS, stamps.type, "ns")
    if STAMP_NS in table.column_names:
        table = table.drop_columns([STAMP_NS])
    return dataclasses.replace(stream.parsed, table=table.append_column(field, stamps))


def _load_stamped(load: Callable[[Row], Any], row: Row) -> Any:
    """Load a payload by its sample time, and stamp it with its log time."""
    value = load({**row, T_NS: row[STAMP_NS]})
    stamped = dataclasses.is_dataclass(value) and hasattr(value, T_NS)
    return dataclasses.replace(value, t_ns=row[T_NS]) if stamped else value  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, eq=False)
class _Order:
    """The samples of a stream ordered by stamps, as they would be played, and by arrival."""

    stream: Stream
    log_ns: Ints
    # (m,), rows of the stream
    by_stamp: Ints
    by_arrival: Ints

    @classmethod
    def of(cls, stream: Stream, reorder_ns: int) -> _Order:
        assert stream.log_ns is not None
        by_arrival = np.argsort(stream.log_ns, kind="stable")
        arrived = stream.t_ns[by_arrival]
        late = arrived < np.maximum.accumulate(arrived) - reorder_ns
        played = by_arrival[~late] if late.mean() <= MAX_LATE_RATIO else by_arrival
        by_stamp = played[np.argsort(stream.t_ns[played], kind="stable")]
        return cls(stream, stream.log_ns, by_stamp, by_arrival)

    @property
    def steps_ns(self) -> Ints:
        """Steps of the stamps (n - 1,) in the order of arrival."""
        return np.diff(self.stream.t_ns[self.by_arrival])

    @property
    def backward_ratio(self) -> float:
        return float((self.steps_ns < 0).mean())

    @property
    def is_frozen(self) -> bool:
        """Whether most stamps repeat the one before although samples arrived one after the other."""
        arrivals = np.diff(self.log_ns[self.by_arrival])
        return float((self.steps_ns == 0).mean()) > 0.5 and float((arrivals == 0).mean()) < 0.1

    def describe(self) -> str:
        steps = self.steps_ns
        backward = steps[steps < 0]
        return (
            f"{len(backward)} of {len(self.stream)} stamps of {self.stream.name} go back, by up to "
            f"{-backward.min() / NS:.2g} s, in the order of arrival"
        )

    def path_ratio(self) -> float | None:
        """Return the length of the path by stamps over that by order of arrival; None without poses."""
        names = set(self.stream.columns)
        if not {"x", "y"} <= names:
            return None
        positions, headings = self.stream.array("x", "y"), _headings(self.stream, names)
        if positions.shape[1] != 2:
            return None
        by_stamp, by_arrival = (
            _path_length(positions[rows], headings[rows]) for rows in (self.by_stamp, self.by_arrival)
        )
        return by_stamp / by_arrival if by_arrival > 0 else None

    def interval_ratio(self) -> float:
        """Return the ratio of the spreads of intervals between sorted stamps and between log times."""
        by_stamp, by_arrival = (np.diff(np.sort(t)) for t in (self.stream.t_ns, self.log_ns))
        return float(robust.mad(by_stamp) / max(float(robust.mad(by_arrival)), 1.0))


def _headings(stream: Stream, names: set[str]) -> Floats:
    """Return headings (n,), rad; 0 where an attitude is missing."""
    headings = np.zeros(len(stream))
    if set(_QUATERNION) <= names:
        quaternions = stream.array(*_QUATERNION)
        known = np.isfinite(quaternions).all(axis=1) & quaternions.any(axis=1)
        if known.any():
            matrices = rotations.matrix_from_quaternion(quaternions[known])
            headings[known] = np.arctan2(matrices[:, 1, 0], matrices[:, 0, 0])
    return headings


def _path_length(positions: Floats, headings: Floats) -> float:
    """Return metres along positions (n, 2); turns count as `TURN_RADIUS_M` says."""
    known = np.isfinite(positions).all(axis=1)
    turns = np.abs(np.angle(np.exp(1j * np.diff(headings[known]))))
    steps = np.linalg.norm(np.diff(positions[known], axis=0), axis=1)
    return float((steps + TURN_RADIUS_M * turns).sum())
