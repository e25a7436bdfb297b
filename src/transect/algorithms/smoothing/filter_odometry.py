"""The way of a body of which an IMU and positions are all that is known: a filter goes first.

A factor graph needs values to begin with, and the way between keyframes. Both are the filter's; what it found
is no measurement, and no factor is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import se3

from ..fusion.context import FusionContext
from ..fusion.error_state import State
from ..fusion.error_state_filter import ErrorStateFilter
from ..fusion.measurements import Event, Step

EVERY_NS = NS // 20
"""Between two poses of the way."""


class Follower:
    """Follows a filter.

    The way has the filter's attitudes, and its velocities added up: a correction moves the filter's position
    at once, which no body does.

    Attributes
    ----------
    filter : ErrorStateFilter
    start : (4, 4) array or None
        T_map_body where the way begins; None until the filter has begun.
    """

    def __init__(self, filter: ErrorStateFilter) -> None:
        self.filter, self.start = filter, None
        self._before: tuple[int, Floats, Floats] | None = None
        self._steps: list[Step] = []
        filter.watch = self._watch

    def follow(self, ctx: FusionContext, events: Sequence[Event]) -> list[Step]:
        """Take the events of a tick; return the steps that are new."""
        self.filter.take(ctx, events)
        steps, self._steps = self._steps, []
        return steps

    def _watch(self, x: State) -> None:
        before = self._before
        if before is None:
            self.start = se3.from_matrix(x.rotation, x.p)
        elif x.t_ns - before[0] < EVERY_NS:
            return
        else:
            t_ns, R, v = before
            moved = (v + x.v) / 2 * ((x.t_ns - t_ns) / NS)
            transform = se3.from_matrix(R.T @ x.rotation, R.T @ moved)
            self._steps.append(Step("motion", t_ns, x.t_ns, transform, planar=False))
        self._before = x.t_ns, np.array(x.rotation), np.array(x.v)
