"""Is a fault in what was written? A recording is opened again and compared, stream by stream.

A format may leave out a stream, or the column that a fault changed, or round the change away. What was read
back is compared with the stream as it was and as the fault left it, in the labelled samples only: the fault
is there if most of them are nearer to the latter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Ints
from transect.recording import FrameTree, Recording, Stream, arrow
from transect.types import Image, PointCloud

MOST = 2000
"""Labelled samples of a stream that are compared."""


def find_lost(original: Recording, faulty: Recording, again: Recording, labels: pa.Table) -> dict[str, str]:
    """Return the labelled streams whose fault is not in a recording that was read back, and why.

    Parameters
    ----------
    original, faulty : Recording
        Without the fault, and with it.
    again : Recording
        The latter, written and opened.
    labels : Table
        See `inject`.
    """
    names, index = np.array(arrow.texts(labels, "stream"), dtype=np.str_), arrow.numbers(labels, "index")
    lost: dict[str, str] = {}
    for name in dict.fromkeys(names.tolist()):
        rows = np.unique(index[names == name].astype(np.int64))
        found = find_stream(again, faulty[name])
        if found is None:
            reason = "it is left out"
        elif original[name] is faulty[name]:
            reason = _find_reason_of_mount(original.frames, faulty.frames, again.frames, faulty[name].frame)
        else:
            reason = _find_reason(original[name], faulty[name], found, rows)
        if reason:
            lost[name] = reason
    return lost


def find_stream(recording: Recording, stream: Stream) -> Stream | None:
    """Return the stream of a recording that another one was written to; formats rename some."""
    own = [s for s in recording if not s.name.startswith("truth/")]
    plain = stream.name.strip("/").lower()
    for same in (
        [s for s in own if s.name == stream.name],
        [s for s in own if s.name.strip("/").lower() == plain],
        [s for s in own if s.type is stream.type and len(s) == len(stream)],
        [s for s in own if s.type is stream.type],
    ):
        if len(same) == 1:
            return same[0]
    return None


def _find_reason_of_mount(before: FrameTree, after: FrameTree, again: FrameTree, frame: str) -> str:
    """Return why a mount that a fault moved is not in frames that were read back, "" if it is."""
    old, new, back = ({e.child: e.matrix for e in tree.edges} for tree in (before, after, again))
    moved = [name for name in after.ancestry(frame) if new.get(name) is not old.get(name)]
    if any(back.get(name) is None for name in moved):
        return "its mount is left out"
    held = [_distance(back[name], new[name]) < _distance(back[name], old[name]) for name in moved]
    return "" if all(held) else "its mount is that without the fault"


def _find_reason(before: Stream, after: Stream, again: Stream, rows: Ints) -> str:
    """Return why a fault is not in a stream that was read back, "" if it is."""
    if len(after) > len(before):
        more = len(again) - len(before)
        return "" if more > (len(after) - len(before)) / 2 else "rows that are there twice are in it once"
    place = _place_in(after, before) if len(after) != len(before) else np.arange(len(before))
    gone, there = rows[place[rows] < 0], rows[place[rows] >= 0]
    if gone.size and again.clock != before.clock:
        return f"its times are left out ({again.clock} clock)"
    if gone.size and _are_gone(before, after, again, gone):
        return ""
    there = there[:: 1 + len(there) // MOST]
    changed = place[there]
    back = changed if len(after) == len(again) else _nearest(again, after.t_ns[changed], _half_step(after))
    if not (back >= 0).any():
        return "its samples are left out" if there.size else "samples that were taken out are in it"
    chosen = back >= 0
    return Samples(before, after, again, there[chosen], changed[chosen], back[chosen]).find_reason()


# Which sample is which


def _place_in(after: Stream, before: Stream) -> Ints:
    """Index (n,) that each sample without the fault has with it; -1 where it is gone."""
    return _nearest(after, before.t_ns, 0.0)


def _nearest(stream: Stream, t_ns: Ints, within: float) -> Ints:
    """Index (m,) of the sample nearest to each time; -1 where none is within so many ns."""
    if not len(stream):
        return np.full(len(t_ns), -1)
    order = np.argsort(stream.t_ns, kind="stable")
    times = stream.t_ns[order]
    right = np.clip(np.searchsorted(times, t_ns), 0, len(times) - 1)
    left = np.maximum(right - 1, 0)
    best = np.where(np.abs(times[left] - t_ns) < np.abs(times[right] - t_ns), left, right)
    return np.where(np.abs(times[best] - t_ns) <= within, order[best], -1)


def _half_step(stream: Stream) -> float:
    steps = np.diff(np.sort(stream.t_ns))
    return float(np.median(steps)) / 2 if len(steps) else 0.0


def _are_gone(before: Stream, after: Stream, again: Stream, gone: Ints) -> bool:
    """Tell whether samples that the fault took out are not there, but for a few."""
    if len(again) <= len(after):
        return True
    return bool(np.mean(_nearest(again, before.t_ns[gone], _half_step(before) / 2) < 0) > 0.5)


# What is nearer


@dataclass(frozen=True, eq=False)
class Samples:
    """The same samples of a stream without a fault, with it, and read back: streams and their rows (m,)."""

    before: Stream
    after: Stream
    again: Stream
    rows: Ints
    changed: Ints
    back: Ints

    def find_reason(self) -> str:
        """Return why the fault is not in what was read back, "" if it is."""
        if self._nearer(
            self.before.t_ns[self.rows], self.after.t_ns[self.changed], self.again.t_ns[self.back]
        ):
            return ""
        if self.before.loader is not None and self._holds_payloads():
            return ""
        columns = [name for name in self.before.columns if self._is_changed(name)]
        if any(self._holds(name) for name in columns):
            return ""
        kinds = [*columns, *(["the images or clouds"] if self.before.loader is not None else [])]
        return f"the change of {', '.join(kinds or ['the times'])} is left out"

    def _is_changed(self, name: str) -> bool:
        pairs = zip(
            _values(self.before, name, self.rows), _values(self.after, name, self.changed), strict=True
        )
        return any(_distance(old, new) > 0 for old, new in pairs)

    def _holds(self, name: str) -> bool:
        back = _values(self.again, name, self.back) if name in self.again.columns else ()
        if not back:
            return False
        return self._nearer(
            _values(self.before, name, self.rows), _values(self.after, name, self.changed), back
        )

    def _holds_payloads(self) -> bool:
        if self.again.loader is None:
            return False
        middle = len(self.rows) // 2
        places = ((self.before, self.rows), (self.after, self.changed), (self.again, self.back))
        return self._nearer(*([stream[int(rows[middle])].value] for stream, rows in places))

    def _nearer(self, old: Any, new: Any, back: Any) -> bool:
        """Tell whether most values that differ were read back as the new ones, and were not rounded away."""
        other = [(o, n, b) for o, n, b in zip(old, new, back, strict=True) if _distance(o, n) > 0]
        held = [_distance(b, n) < min(_distance(b, o), _distance(o, n)) for o, n, b in other]
        return bool(held) and bool(np.mean(held) > 0.5)


def _values(stream: Stream, name: str, rows: Ints) -> list[Any]:
    return stream.table.select([name]).take(arrow.from_numpy(rows)).column(0).to_pylist()


def _distance(a: Any, b: Any) -> float:
    """How different two values are; numbers that are measured in only one of them count most."""
    if isinstance(a, Image) and isinstance(b, Image):
        a, b = a.data, b.data
    if isinstance(a, PointCloud) and isinstance(b, PointCloud):
        a, b = a.points, b.points
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return float(a != b)
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape:
        return 1e9 * abs(len(x) - len(y)) + 1.0 if x.ndim and y.ndim else np.inf
    known = np.isfinite(x) & np.isfinite(y)
    return float(np.abs(x - y)[known].sum() + 1e6 * np.sum(np.isfinite(x) != np.isfinite(y)))
