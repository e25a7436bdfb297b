"""tf messages as a stream of transforms and as a FrameTree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Ints
from transect.errors import FrameError
from transect.geometry import se3
from transect.recording import FrameTree, arrow

from .ros_decoder import Columns, Lists
from .ros_messages import MessageTable, frame_name, sample_times, with_times

TF_TYPES = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")
_VALUES = {
    **{f"transform.translation.{axis}": axis for axis in "xyz"},
    **{f"transform.rotation.{axis}": f"q{axis}" for axis in "xyzw"},
}
_NAMES = ("header.stamp_ns", "header.frame_id", "child_frame_id")
_UNITS = dict.fromkeys("xyz", "m")


def is_static(topic: str) -> bool:
    """Return whether a tf topic has static transforms."""
    return topic.rstrip("/").endswith("tf_static")


def tabulate_tf(columns: Columns, log_ns: Ints, topic: str, clock: str) -> MessageTable:
    """Return the transforms of tf messages, one row each: T_parent_child as x y z qx qy qz qw."""
    if not len(log_ns):
        return MessageTable(arrow.empty({"x": "m", "y": "m", "z": "m"}), ())
    lists = columns.get("transforms")
    values = with_times(lists.values) if isinstance(lists, Lists) and isinstance(lists.values, dict) else {}
    if lists is None or not {*_VALUES, *_NAMES} <= set(values):
        return MessageTable(
            arrow.table(log_ns, {}, log_ns=log_ns), (f"{topic}: its messages are not transforms",)
        )
    logged = np.repeat(log_ns, lists.lengths)
    t_ns, notes = sample_times(values["header.stamp_ns"], logged, topic, clock)
    parents = [frame_name(name) for name in values["header.frame_id"]]
    children = [frame_name(name) for name in values["child_frame_id"]]
    table: dict[str, Any] = {"parent": arrow.strings(parents), "child": arrow.strings(children)}
    table |= {name: values[path] for path, name in _VALUES.items()}
    for child, known in _parents(parents, children).items():
        if len(known) > 1:
            shown = ", ".join(name for name, _ in known.most_common())
            notes.append(
                f"{topic}: {child} has several parents ({shown}), the frame tree keeps the one sent most"
            )
    return MessageTable(arrow.table(t_ns, table, units=_UNITS, log_ns=logged), tuple(notes))


def _parents(parents: list[str], children: list[str]) -> dict[str, Counter[str]]:
    """Counts of the parents of each child."""
    known: dict[str, Counter[str]] = defaultdict(Counter)
    for (parent, child), count in Counter(zip(parents, children, strict=True)).items():
        known[child][parent] += count
    return known


class LazyFrameTree(FrameTree):
    """A FrameTree that is filled on first access, because transforms are spread over a bag."""

    def __init__(self, fill: Callable[[FrameTree], None]) -> None:
        self._fill = fill

    def __getattr__(self, name: str) -> Any:
        """Initialise the attributes of `FrameTree.__init__` on first access, then fill the tree."""
        if name.startswith("__") or "_edges" in self.__dict__:
            raise AttributeError(name)
        super().__init__()
        self._fill(self)
        return getattr(self, name)


def add_tf(tree: FrameTree, table: pa.Table, *, static: bool, clock: str, source: str) -> None:
    """Add the transforms of a tf table to a tree; of several parents of a frame the most frequent counts."""
    if "parent" not in table.column_names:
        return
    parents, children = arrow.texts(table, "parent"), arrow.texts(table, "child")
    best = {child: known.most_common(1)[0][0] for child, known in _parents(parents, children).items()}
    rows: dict[str, list[int]] = defaultdict(list)
    for row, (parent, child) in enumerate(zip(parents, children, strict=True)):
        if best[child] == parent:
            rows[child].append(row)
    xyz = np.column_stack([arrow.numbers(table, axis) for axis in "xyz"])
    q = np.column_stack([arrow.numbers(table, f"q{axis}") for axis in "xyzw"])
    t_ns = arrow.numbers(table, "t_ns")
    for child, chosen in rows.items():
        try:
            if static:
                last = se3.from_quaternion(q[chosen[-1]], xyz[chosen[-1]])
                tree.add_static(best[child], child, last, source=source)
            else:
                moving = (t_ns[chosen], xyz[chosen], q[chosen])
                tree.add_moving(best[child], child, *moving, clock=clock, source=source, replace=True)
        except FrameError as error:
            import logging  # seldom needed, and slow to import

            text = "%s: the transform of %s is left out of the frame tree: %s"
            logging.getLogger("transect").warning(text, source, child, error.what)
