"""T06: does the clock of the stamps jump."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry.robust import NORMAL
from transect.integrity.learning import Pace
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window

REFERENCE = 10
"""Windows whose delays a window is compared with."""
MANY = 5.0
"""Deviations that are no noise."""
MANY_LARGEST = 2.0
"""Times the largest deviation of a step so far that are no jitter."""
LONGEST = 0.5
"""Seconds of a forward step that may be a jump; after a longer one samples are missing (T02)."""
QUICKEST = 0.8
"""Part of a jump that the sample with the shortest delay shows, too."""
BETWEEN = 0.05
"""Part of a step by which a jump must differ from whole steps, at least: those are lost samples."""
NEIGHBOURS = 5
"""Samples before and behind a step that tell whether it lasts."""
STEADY = 0.1
"""Jitter up to which a stream without log times shows jumps."""


class ClockJump(Check, id="T06", group="timing", k_on=1, k_off=1, version=2):
    """A step in ``t_sample - t_log`` that is more than 5 deviations.

    The median of a window is compared with those of the ten windows before; where it is less than two steps
    between samples, so is the sample with the shortest delay. Without log times a stream of
    a steady pace shows jumps backwards, and forwards of up to half a second after which the samples have
    another phase. A jump by a whole number of steps cannot be told from lost samples then, nor a longer one
    from a sensor that began anew: both are gaps (T02).

    Motive: Document 000 logs the receiver's own time beside that of the middleware (GnssPose).
    """

    jump = Limit(0.015, 0.1, "CLOCK_JUMP", "s", "by which stamps jump against the recorder's clock")

    def reset(self) -> None:
        """No delays and no pace are known yet."""
        self._pace = Pace()
        self._delays: deque[tuple[float, float]] = deque(maxlen=REFERENCE)
        self._origin: int | None = None
        self._largest = 0.0

    def look(self, stream: Window[Any]) -> Finding | Unknown:
        """Compare delays with those before; without log times, steps with the usual one."""
        usual = self._pace.step
        self._pace.learn(stream.steps_s)
        if stream.stream.role == "estimate":
            return Unknown("ESTIMATE", "it is computed, and logged when it is ready", len(stream))
        if stream.log_ns is not None:
            return self._by_log(stream, stream.log_ns)
        if not (math.isfinite(usual) and self._pace.jitter <= STEADY):
            return Unknown("NO_LOG_TIME", n=len(stream))
        # The window before: a jump lasts, jitter and disorder do not, which the samples behind it tell.
        past = stream.history(3 * stream.seconds)
        rows = slice(len(past) - len(stream) - stream.before, len(past) - len(stream))
        jump = _jump_of(past.steps_s, usual, self._pace.jitter, rows)
        jump = jump if jump > MANY_LARGEST * self._largest else 0.0
        if not jump:
            off = _off_whole_steps(past.steps_s[rows], usual)
            self._largest = max(self._largest, float(np.max(np.abs(off), initial=0.0)))
        return Finding({"jump": jump}, len(stream))

    def _by_log(self, stream: Window[Any], log_ns: Ints) -> Finding | Unknown:
        delays_ns = stream.t_ns - log_ns
        self._origin = int(delays_ns[0]) if self._origin is None else self._origin
        delays = (delays_ns - self._origin) / NS
        now = float(np.median(delays)), float(np.max(delays))
        noise = NORMAL * float(np.median(np.abs(delays - now[0])))
        before, step = np.array(self._delays), self._pace.step
        self._delays.append(now)
        if len(before) < 3 or not math.isfinite(step):
            return Unknown("LEARNING", n=len(stream))
        middle = np.median(before, axis=0)
        noise = max(noise, NORMAL * float(np.median(np.abs(before[:, 0] - middle[0]))))
        jump, quickest = np.abs(now - middle).tolist()
        # What a busy recorder delays is not its quickest sample.
        is_jump = jump > MANY * noise and (jump > 2 * step or quickest > QUICKEST * jump)
        if is_jump:  # the clock goes on from where it is now
            self._delays.clear()
            self._delays.extend([now] * 3)
        found = {"delay_s": now[0] - float(middle[0]), "noise_s": noise}
        return Finding({"jump": jump if is_jump else 0.0}, len(stream), found)


def _off_whole_steps(steps_s: Floats, usual: float) -> Floats:
    """Return (n,) by how much steps differ from whole numbers of usual ones, s: lost samples do not count."""
    known = steps_s[np.isfinite(steps_s)]
    return known - usual * np.maximum(np.rint(known / usual), 1.0)


def _jump_of(steps_s: Floats, usual: float, jitter: float, rows: slice) -> float:
    """Return the largest jump that some of the steps show, s; 0 if they show none.

    Behind a jump the samples have another phase; where some are lost it stays.
    """
    off = np.where(np.isfinite(steps_s), steps_s - usual, 0.0)
    phase, least = np.cumsum(off), max(BETWEEN, MANY * jitter) * usual
    odd = (np.abs(off) > least) & (off < LONGEST)
    largest = 0.0
    for at in np.flatnonzero(odd).tolist():
        if not rows.start <= at < rows.stop:
            continue
        before, behind = phase[max(0, at - NEIGHBOURS) : at], phase[at : at + NEIGHBOURS]
        lasting = float(np.median(behind) - np.median(before)) if at else 0.0
        shifted = abs(lasting - usual * np.rint(lasting / usual))
        if shifted > least or steps_s[at] < 0:
            largest = max(largest, min(abs(lasting), abs(float(off[at]))))
    return largest if largest > least else 0.0
