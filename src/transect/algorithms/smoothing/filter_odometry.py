"""Path of a body with an IMU and positions alone, by a filter.

A factor graph needs initial values, and the path between keyframes. Both are taken from the filter; its
result is no measurement, and is no factor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import se3

from ..fusion.context import FusionContext
from ..fusion.error_state import FilterState
from ..fusion.error_state_filter import ErrorStateFilter
from ..fusion.events import Event, OdometryStep


class FilterOdometry:
    """Steps between the states of a filter.

    They have the filter's attitudes, and its integrated velocities: an update moves the filter's position at
    once, which no body does.
    """

    def __init__(self, filter: ErrorStateFilter, period_ns: int = NS // 20) -> None:
        self.filter, self._period_ns = filter, period_ns
        self.start: Floats | None = None  # (4, 4), T_map_body at the start; None until initialised
        self._last: tuple[int, Floats, Floats] | None = None  # time, rotation, velocity
        self._steps: list[OdometryStep] = []
        filter.observer = self._add_state

    def process_events(self, ctx: FusionContext, events: Sequence[Event]) -> list[OdometryStep]:
        """Apply the events of a tick; return the new steps."""
        self.filter.process_events(ctx, events)
        steps, self._steps = self._steps, []
        return steps

    def _add_state(self, x: FilterState) -> None:
        if self._last is None:
            self.start = se3.from_matrix(x.rotation, x.p)
        elif x.t_ns - self._last[0] < self._period_ns:
            return
        else:
            t_ns, R, v = self._last
            translation = (v + x.v) / 2 * ((x.t_ns - t_ns) / NS)
            transform = se3.from_matrix(R.T @ x.rotation, R.T @ translation)
            self._steps.append(OdometryStep("motion", t_ns, x.t_ns, transform, planar=False))
        self._last = x.t_ns, np.array(x.rotation), np.array(x.v)
