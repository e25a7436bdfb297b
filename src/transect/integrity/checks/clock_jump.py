"""T06: does the clock of the stamps jump."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry.robust import NORMAL
from transect.integrity.baselines import ALIKE, WHOLE, Pace
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window

REFERENCE = 10
"""Windows whose delays a window is compared with."""
MANY = 5.0
"""Deviations that are no noise."""
LONGEST = 0.6
"""Seconds of a forward step that may be a jump; after a longer one samples are missing (T02)."""
QUICKEST = 0.8
"""Part of a jump that the sample with the shortest delay shows, too."""
NEIGHBOURS, FEWEST, WAIT = 40, 5, 2
"""Samples before and behind a step that tell whether its phase lasts; those before at least, and how many
must follow the first one behind it."""
ODD = 0.6
"""Part of the limit `warn` by which a step must differ from the usual one, to be looked at."""
MOST = 5
"""Steps of a window that are looked at."""
UNEVEN = 0.05
"""Part of a step by which a phase may be uncertain: where stamps scatter there are no whole steps."""
USUAL = 3.0
"""Times the largest change of the phase so far, where no step stood out, that is no jump."""
RESOLUTION_S = 1e-6  # Smaller changes of the phase are rounding.
MAX_LOST = 0.25  # Part of the neighbours on either side that may be lost, if a phase is to be known.
MAX_BATCHED_RATIO = 0.05  # Part of the steps around a jump that may be much shorter than the usual one.
SELDOM = 600.0
"""Seconds in which a clock may jump once more; what changes its phase more often has none that lasts."""
STEADY = 0.1
"""Jitter up to which a stream without log times shows jumps."""
LONGER, COMPLETE = 1.5, 10
"""Usual steps from which on a step is longer; steps that were not, at least, for a stream that loses no
samples."""
LEAPED = "samples are lost, or its clock jumped ahead: without log times nothing tells"
AT_MOST_SUSPECT = 0.2
"""Score of a leap by whole steps, at least."""


class ClockJump(Check, id="T06", group="timing", k_on=1, k_off=1, version=7):
    """A step in ``t_sample - t_log`` that is more than 5 deviations.

    The median of a window is compared with those of the ten windows before; where it is less than two steps
    between samples, so is the sample with the shortest delay. A busy recorder delays most samples, and hides
    a jump of a few steps; there the shortest delays alone must differ, by more than 5 times what they did
    before, and one step between stamps from the usual one by as much. Without log times a steady stream
    shows jumps backwards, and forwards of up to half a second after which the samples have another phase:
    a straight line through the stamps before is prolonged, and the median distance of those behind from it,
    less whole steps, must be more than 5 deviations, and 3 times what it was anywhere before. Where the phase
    changes more than once in ten minutes, only the first change is a jump: loops that log when they are done
    do that. A jump ahead by a whole number of steps, to a tenth of one, cannot be told from lost samples
    then, nor a longer one from a sensor that began anew: both are gaps (T02). But a stream that had lost no
    sample before has either lost one, or all that follows is late: that is SUSPECT, with the reason GAP.

    Motive: Document 000 logs the receiver's own time beside that of the middleware (GnssPose).
    """

    jump = Limit(0.015, 0.1, "CLOCK_JUMP", "s", "by which stamps jump")

    def reset(self) -> None:
        """No delays and no pace are known yet."""
        self._pace = Pace()
        self._delays: deque[tuple[float, float]] = deque(maxlen=REFERENCE)
        self._origin: int | None = None
        self._wander, self._looked = 0.0, 0
        self._steps, self._is_complete = 0, True
        self._changes, self._begin = 0, 0

    def look(self, stream: Window[Any]) -> Finding | Unknown:
        """Compare delays with those before; without log times, steps with the usual one."""
        usual = self._pace.period
        self._pace.learn(stream.steps_s)
        if stream.log_ns is not None:
            return self._by_log(stream, stream.log_ns)
        if not (math.isfinite(usual) and self._pace.jitter <= STEADY):
            return Unknown("NO_LOG_TIME", n=len(stream))
        jump, leap = self._by_phase(stream, usual), self._by_count(stream, usual)
        if leap > max(jump, self.jump.warn):
            return Finding({"jump": leap}, len(stream), {}, "GAP", LEAPED, floor=AT_MOST_SUSPECT)
        return Finding({"jump": jump}, len(stream))

    def _by_count(self, stream: Window[Any], usual: float) -> float:
        """Return the longest leap by whole steps, s; 0 if there is none, or samples were lost before."""
        steps = stream.steps_s[np.isfinite(stream.steps_s)]
        ratio, is_new = steps / usual, self._is_complete and self._steps >= COMPLETE
        is_long = ratio > LONGER
        self._steps, self._is_complete = self._steps + len(steps), self._is_complete and not is_long.any()
        leaps = steps[is_long & (np.abs(ratio - np.rint(ratio)) <= WHOLE) & (steps < LONGEST + usual)]
        return float(np.max(leaps, initial=usual)) - usual if is_new else 0.0

    def _by_phase(self, stream: Window[Any], usual: float) -> float:
        """Return the largest jump that is new, s: the samples behind it tell whether it lasts."""
        self._begin = self._begin or stream.t0_ns
        past = stream.history(max(3 * stream.seconds, (NEIGHBOURS + 5) * usual))
        known = past.stop - max(len(stream), WAIT)
        rows = np.arange(max(self._looked, past.start + FEWEST), known) - past.start
        self._looked = max(self._looked, known)
        if not len(rows):
            return 0.0
        t_s, off = (past.t_ns - past.t_ns[0]) / NS, np.nan_to_num(past.steps_s - usual)
        stands_out = np.abs(off) > ODD * self.jump.warn
        odd = rows[stands_out[rows] & (off[rows] < LONGEST)]
        if not len(odd):
            at = int(rows[len(rows) // 2])
            if not stands_out[max(0, at - NEIGHBOURS) : at + NEIGHBOURS].any():
                self._wander = max(self._wander, abs(_phase_at(t_s, at, usual)[0]))
            return 0.0
        largest = np.argsort(-np.abs(off[odd]), kind="stable")[:MOST]
        jump = max(self._jump_at(t_s, at, usual) for at in odd[largest].tolist())
        self._changes += jump > self.jump.warn
        return jump if self._changes <= 1 + (stream.t1_ns - self._begin) / NS / SELDOM else 0.0

    def _jump_at(self, t_s: Floats, at: int, usual: float) -> float:
        """Return by how much stamps (n,) jump at one of them, 0 if they do not."""
        if _is_batched(t_s, at, usual):
            return 0.0
        jump, deviation, spread = _phase_at(t_s, at, usual)
        # A phase that lasts is one: stamps that come in batches have many.
        if deviation > UNEVEN * usual or spread > abs(jump):
            return 0.0
        least = max(MANY * deviation, USUAL * self._wander, RESOLUTION_S)
        # One that came after its successor is followed by a later one.
        back = t_s[at] < t_s[at - 1] and t_s[at + 1] < t_s[at - 1] + usual / 4
        whole = np.rint(jump / usual)
        off = abs(jump - usual * whole)
        between = off > (max(least, WHOLE * usual) if whole else least)  # else samples are lost
        return abs(jump) if abs(jump) > least and (back or between) else 0.0

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
        wander = float(np.max(np.abs(before[:, 1] - middle[1])))
        if not is_jump and quickest > MANY * wander and self._is_in_steps(stream, now[1] - float(middle[1])):
            jump, is_jump = quickest, True
        if is_jump:  # the clock goes on from where it is now
            self._delays.clear()
            self._delays.extend([now] * 3)
        found = {"delay_s": now[0] - float(middle[0]), "noise_s": noise}
        return Finding({"jump": jump if is_jump else 0.0}, len(stream), found)

    def _is_in_steps(self, stream: Window[Any], jump: float) -> bool:
        """Tell whether some step of the stamps is as much too long, or too short, as the clock jumped, s."""
        if not self._pace.jitter <= STEADY:
            return False
        off = stream.history(3 * stream.seconds).steps_s - self._pace.step
        return bool(np.any(np.abs(off - jump) < (1 - QUICKEST) * abs(jump)))


def _phase_at(t_s: Floats, at: int, usual: float) -> tuple[float, float, float]:
    """Return by how much the stamps from one on are late, its deviation, and how much they scatter, s.

    They are late against the line through those before. Between the two no sample is taken to be lost.
    """
    before, behind = t_s[max(0, at - NEIGHBOURS) : at], t_s[at : at + NEIGHBOURS]
    places = _places(before, usual)
    later = _places(behind, usual)
    lost = [every[-1] + 1 - len(every) for every in (places, later)]
    if len(np.unique(places)) < FEWEST or max(lost) > MAX_LOST * NEIGHBOURS:
        return (
            0.0,
            math.inf,
            math.inf,
        )  # stamps that repeat have no phase, and a count tells nothing of losses
    slope, start_s = _fit_line(places, before)
    rest = np.abs(before - (start_s + slope * places))
    good = rest <= np.maximum(3 * NORMAL * np.median(rest), 1e-9)
    if len(np.unique(places[good])) >= FEWEST:
        slope, start_s = _fit_line(places[good], before[good])
    # By count, from a few samples: of two that changed places one is not where it belongs.
    near, far = places[-FEWEST:], later[:FEWEST]
    start = np.rint(np.median(near + np.arange(len(near), 0, -1)) - np.median(far - np.arange(len(far))))
    ahead = behind - (start_s + slope * (start + later))
    jump = float(np.median(ahead))
    off = np.sort(np.abs(ahead - jump))
    spread = NORMAL * float(np.median(off)) if len(off) >= 2 * FEWEST else float(off[-1]) / 2
    sigma = max(NORMAL * float(np.median(rest)), spread)
    return jump, sigma * float(np.sqrt(np.pi / 2 / len(behind) + 4 / len(before))), spread


def _is_batched(t_s: Floats, at: int, usual: float) -> bool:
    """Tell whether samples around one are stamped several at a time, when they are read: no clock is seen."""
    steps = np.diff(t_s[max(0, at - NEIGHBOURS) : at + NEIGHBOURS])
    return int(np.count_nonzero((steps > 0) & (steps < ALIKE * usual))) > MAX_BATCHED_RATIO * len(steps) + 1


def _fit_line(places: Floats, t_s: Floats) -> tuple[float, float]:
    """Return step and start of the line through stamps (n,) at several places (n,)."""
    middle, around = float(np.mean(places)), places - np.mean(places)
    slope = float(around @ (t_s - np.mean(t_s))) / float(around @ around)
    return slope, float(np.mean(t_s)) - slope * middle


def _places(t_s: Floats, usual: float) -> Floats:
    """Return which steps (n,) from the first one on stamps are at: lost samples leave some out."""
    count = max(np.rint((t_s[-1] - t_s[0]) / usual), 1.0)
    return np.rint((t_s - t_s[0]) * (count / max(t_s[-1] - t_s[0], usual)))
