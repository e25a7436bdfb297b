"""Checks of the clock of the stamps: jumps and drift (T06, T07)."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry.robust import SIGMA_PER_MAD
from transect.integrity.baselines import SETTINGS as BASELINES
from transect.integrity.baselines import SampleInterval
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window

LOSS_OR_JUMP = "samples are lost, or its clock jumped ahead: without log times this cannot be decided"


@dataclass(frozen=True)
class ClockJumpSettings:
    """Numbers of the search for jumps, with and without log times."""

    reference_windows: int = 10  # Windows whose delays are compared with.
    jump_sigmas: float = 5.0
    max_forward_step_s: float = 0.6  # A longer step forward means missing samples (T02).
    # Ratio of a jump that the sample with the minimum delay must show, too.
    min_quickest_ratio: float = 0.8
    neighbours: int = 40  # Samples before and after a step that show whether its phase persists; ...
    min_neighbours: int = 5  # ... at least before it, ...
    wait_samples: int = 2  # ... and after its first sample.
    # Candidate steps differ from the usual interval by this ratio of the limit `warn`.
    candidate_ratio: float = 0.6
    max_candidates: int = 5  # Candidates per window.
    max_phase_sigma: float = 0.05  # Phase sigma as a ratio of the interval: irregular stamps have no phase.
    # A jump exceeds the largest phase change without a candidate by this factor.
    phase_drift_factor: float = 3.0
    resolution_s: float = 1e-6  # Smaller phase changes are rounding.
    max_lost_ratio: float = 0.25  # Ratio of lost samples among the neighbours of a phase.
    max_batched_ratio: float = 0.05  # Ratio of intervals around a jump that are far too short.
    min_jump_interval_s: float = 600.0  # Phases that change more often do not persist.
    max_jitter: float = 0.1  # Jitter up to which a stream without log times shows jumps.
    min_lossy_intervals: float = 1.5  # Usual intervals from which on samples may be lost.
    complete_intervals: int = 10  # Intervals without a loss of a stream that loses no samples.
    whole_step_score: float = 0.2  # Minimum score of a jump by whole intervals.


class ClockJump(Check, id="T06", group="timing", k_on=1, k_off=1, version=7):
    """A step in ``t_sample - t_log`` of more than 5 sigma.

    The median of a window is compared with those of the ten windows before; if it differs by less than
    two sampling intervals, the sample with the minimum delay must differ as well. A busy recorder delays
    most samples, which hides a jump of a few intervals: then the minimum delays alone must differ by more
    than 5 times their previous variation, and one interval between stamps by the same amount.

    Without log times, a regular stream shows jumps back, and jumps forward of up to half a second after
    which the samples have another phase: a line through the stamps before is extrapolated, and the median
    distance of the later stamps from it, modulo the interval, must exceed 5 sigma and 3 times the phase
    variation before. If the phase changes more than once in ten minutes, as in loops that log when they
    are done, only the first change is a jump. Without log times, a jump forward by a multiple of the
    interval cannot be distinguished from lost samples, nor a longer one from a restarted sensor: both are
    gaps (T02). A stream that had lost no sample before has either lost one, or all that follows is late:
    SUSPECT, with the reason GAP.

    Motive: AMEDS logs the receiver's own time beside that of the middleware (GnssPose).
    """

    settings = ClockJumpSettings()

    jump = Limit(0.015, 0.1, "CLOCK_JUMP", "s", "jump of the stamps")

    def reset(self) -> None:
        """Start without delays and interval."""
        self._interval = SampleInterval()
        self._delays: deque[tuple[float, float]] = deque(maxlen=self.settings.reference_windows)
        self._origin: int | None = None
        self._phase_drift, self._looked = 0.0, 0
        self._steps, self._is_complete = 0, True
        self._changes, self._begin = 0, 0

    def evaluate(self, stream: Window[Any]) -> Finding | Unknown:
        """Compare delays with earlier ones; without log times, compare intervals."""
        usual = self._interval.period
        self._interval.learn(stream.steps_s)
        if stream.log_ns is not None:
            return self._judge_log_delays(stream, stream.log_ns)
        if not (math.isfinite(usual) and self._interval.jitter <= self.settings.max_jitter):
            return Unknown("NO_LOG_TIME", n=len(stream))
        jump, step_ahead = self._find_phase_jump(stream, usual), self._find_whole_step_jump(stream, usual)
        if step_ahead > max(jump, self.jump.warn):
            return Finding(
                {"jump": step_ahead},
                len(stream),
                {},
                "GAP",
                LOSS_OR_JUMP,
                min_score=self.settings.whole_step_score,
            )
        return Finding({"jump": jump}, len(stream))

    def _find_whole_step_jump(self, stream: Window[Any], usual: float) -> float:
        """Return the longest jump by whole intervals, s; 0 without one or after a loss."""
        steps = stream.steps_s[np.isfinite(stream.steps_s)]
        ratio, is_new = steps / usual, self._is_complete and self._steps >= self.settings.complete_intervals
        is_long = ratio > self.settings.min_lossy_intervals
        self._steps, self._is_complete = self._steps + len(steps), self._is_complete and not is_long.any()
        steps_ahead = steps[
            is_long
            & (np.abs(ratio - np.rint(ratio)) <= BASELINES.max_multiple_deviation)
            & (steps < self.settings.max_forward_step_s + usual)
        ]
        return float(np.max(steps_ahead, initial=usual)) - usual if is_new else 0.0

    def _find_phase_jump(self, stream: Window[Any], usual: float) -> float:
        """Return the largest new jump, s; the samples after it show whether it persists."""
        self._begin = self._begin or stream.t0_ns
        past = stream.history(max(3 * stream.seconds, (self.settings.neighbours + 5) * usual))
        known = past.stop - max(len(stream), self.settings.wait_samples)
        rows = np.arange(max(self._looked, past.start + self.settings.min_neighbours), known) - past.start
        self._looked = max(self._looked, known)
        if not len(rows):
            return 0.0
        t_s, deviations = (past.t_ns - past.t_ns[0]) / NS, np.nan_to_num(past.steps_s - usual)
        is_unusual = np.abs(deviations) > self.settings.candidate_ratio * self.jump.warn
        candidates = rows[is_unusual[rows] & (deviations[rows] < self.settings.max_forward_step_s)]
        if not len(candidates):
            at = int(rows[len(rows) // 2])
            if not is_unusual[max(0, at - self.settings.neighbours) : at + self.settings.neighbours].any():
                self._phase_drift = max(self._phase_drift, abs(_phase_at(t_s, at, usual, self.settings)[0]))
            return 0.0
        largest = np.argsort(-np.abs(deviations[candidates]), kind="stable")[: self.settings.max_candidates]
        jump = max(self._jump_at(t_s, at, usual) for at in candidates[largest].tolist())
        self._changes += jump > self.jump.warn
        return (
            jump
            if self._changes <= 1 + (stream.t1_ns - self._begin) / NS / self.settings.min_jump_interval_s
            else 0.0
        )

    def _jump_at(self, t_s: Floats, at: int, usual: float) -> float:
        """Return the jump of stamps (n,) at one of them, 0 without one."""
        if _is_batched(t_s, at, usual, self.settings):
            return 0.0
        jump, deviation, spread = _phase_at(t_s, at, usual, self.settings)
        # Stamps that come in batches have many phases.
        if deviation > self.settings.max_phase_sigma * usual or spread > abs(jump):
            return 0.0
        threshold = max(
            self.settings.jump_sigmas * deviation,
            self.settings.phase_drift_factor * self._phase_drift,
            self.settings.resolution_s,
        )
        # A sample that arrived after its successor is followed by a later one.
        back = t_s[at] < t_s[at - 1] and t_s[at + 1] < t_s[at - 1] + usual / 4
        whole = np.rint(jump / usual)
        off = abs(jump - usual * whole)
        # A jump by whole intervals cannot be distinguished from lost samples.
        between = off > (max(threshold, BASELINES.max_multiple_deviation * usual) if whole else threshold)
        return abs(jump) if abs(jump) > threshold and (back or between) else 0.0

    def _judge_log_delays(self, stream: Window[Any], log_ns: Ints) -> Finding | Unknown:
        delays_ns = stream.t_ns - log_ns
        self._origin = int(delays_ns[0]) if self._origin is None else self._origin
        delays = (delays_ns - self._origin) / NS
        now = float(np.median(delays)), float(np.max(delays))
        noise = SIGMA_PER_MAD * float(np.median(np.abs(delays - now[0])))
        before, step = np.array(self._delays), self._interval.step
        self._delays.append(now)
        if len(before) < 3 or not math.isfinite(step):
            return Unknown("LEARNING", n=len(stream))
        middle = np.median(before, axis=0)
        noise = max(noise, SIGMA_PER_MAD * float(np.median(np.abs(before[:, 0] - middle[0]))))
        jump, quickest = np.abs(now - middle).tolist()
        # A busy recorder does not delay its quickest sample.
        is_jump = jump > self.settings.jump_sigmas * noise and (
            jump > 2 * step or quickest > self.settings.min_quickest_ratio * jump
        )
        delay_drift = float(np.max(np.abs(before[:, 1] - middle[1])))
        if (
            not is_jump
            and quickest > self.settings.jump_sigmas * delay_drift
            and self._is_in_steps(stream, now[1] - float(middle[1]))
        ):
            jump, is_jump = quickest, True
        if is_jump:  # continue from the new clock
            self._delays.clear()
            self._delays.extend([now] * 3)
        found = {"delay_s": now[0] - float(middle[0]), "noise_s": noise}
        return Finding({"jump": jump if is_jump else 0.0}, len(stream), found)

    def _is_in_steps(self, stream: Window[Any], jump: float) -> bool:
        """Return whether an interval between stamps differs from the usual one by the jump, s."""
        if not self._interval.jitter <= self.settings.max_jitter:
            return False
        off = stream.history(3 * stream.seconds).steps_s - self._interval.step
        return bool(np.any(np.abs(off - jump) < (1 - self.settings.min_quickest_ratio) * abs(jump)))


def _phase_at(t_s: Floats, at: int, usual: float, settings: ClockJumpSettings) -> tuple[float, float, float]:
    """Return the delay of the stamps from one on, its sigma, and their scatter, s.

    The delay is relative to the line through the stamps before, with no sample lost between the two.
    """
    before, behind = t_s[max(0, at - settings.neighbours) : at], t_s[at : at + settings.neighbours]
    indices = _step_indices(before, usual)
    later = _step_indices(behind, usual)
    lost = [every[-1] + 1 - len(every) for every in (indices, later)]
    if (
        len(np.unique(indices)) < settings.min_neighbours
        or max(lost) > settings.max_lost_ratio * settings.neighbours
    ):
        return 0.0, math.inf, math.inf  # repeated stamps have no phase, and do not show losses
    slope, start_s = _fit_line(indices, before)
    rest = np.abs(before - (start_s + slope * indices))
    good = rest <= np.maximum(3 * SIGMA_PER_MAD * np.median(rest), 1e-9)
    if len(np.unique(indices[good])) >= settings.min_neighbours:
        slope, start_s = _fit_line(indices[good], before[good])
    # By count, from a few samples, as one of two exchanged samples has a wrong index.
    near, far = indices[-settings.min_neighbours :], later[: settings.min_neighbours]
    start = np.rint(np.median(near + np.arange(len(near), 0, -1)) - np.median(far - np.arange(len(far))))
    ahead = behind - (start_s + slope * (start + later))
    jump = float(np.median(ahead))
    off = np.sort(np.abs(ahead - jump))
    spread = (
        SIGMA_PER_MAD * float(np.median(off))
        if len(off) >= 2 * settings.min_neighbours
        else float(off[-1]) / 2
    )
    sigma = max(SIGMA_PER_MAD * float(np.median(rest)), spread)
    return jump, sigma * float(np.sqrt(np.pi / 2 / len(behind) + 4 / len(before))), spread


def _is_batched(t_s: Floats, at: int, usual: float, settings: ClockJumpSettings) -> bool:
    """Return whether samples around one are stamped in batches, when they are read."""
    steps = np.diff(t_s[max(0, at - settings.neighbours) : at + settings.neighbours])
    return (
        int(np.count_nonzero((steps > 0) & (steps < BASELINES.max_single_deviation * usual)))
        > settings.max_batched_ratio * len(steps) + 1
    )


def _fit_line(indices: Floats, t_s: Floats) -> tuple[float, float]:
    """Return step and start of the line through stamps (n,) at several indices (n,)."""
    middle, around = float(np.mean(indices)), indices - np.mean(indices)
    slope = float(around @ (t_s - np.mean(t_s))) / float(around @ around)
    return slope, float(np.mean(t_s)) - slope * middle


def _step_indices(t_s: Floats, usual: float) -> Floats:
    """Return the index (n,) of each stamp in usual intervals from the first; losses leave gaps."""
    count = max(np.rint((t_s[-1] - t_s[0]) / usual), 1.0)
    return np.rint((t_s - t_s[0]) * (count / max(t_s[-1] - t_s[0], usual)))


@dataclass(frozen=True)
class ClockDriftSettings:
    """Numbers of the drift estimate."""

    min_windows: int = 30  # Windows that determine a drift.
    fit_interval: int = 5  # Windows from one fit to the next.
    # No quartz drifts by more: such stamps are simulated time, or count something else.
    max_clock_drift_ppm: float = 1000.0
    # Windows that show a drift that has begun recently; a shorter time shows only a larger drift.
    recent_windows: int = 20
    max_windows: int = 2000  # Every second window is dropped if there are more.


class ClockDrift(Check, id="T07", group="timing", version=2):
    """Slope of the lower convex hull of ``t_log - t_sample`` over time, less its uncertainty.

    The minimum delay of each window is used, since a message can be late for many reasons and never
    early. The slope is that of the hull edge below the middle of the time; the delays above that edge
    determine its uncertainty. Both halves of the time must show the drift, as a jump (T06) is no drift.
    The newest 20 windows are fitted separately, and the larger drift counts.

    Motive: SDI: clocks by NTP, offsets of "a maximum of a few milliseconds".
    """

    settings = ClockDriftSettings()

    drift = Limit(20.0, 100.0, "CLOCK_DRIFT", "ppm", "of drift, less its uncertainty")

    def reset(self) -> None:
        """Start without delays."""
        self._points: list[tuple[float, float]] = []
        self._origin = (0, 0)
        self._age = 0
        self._last: Finding | Unknown = Unknown("LEARNING")

    def evaluate(self, stream: Window[Any]) -> Finding | Unknown:
        """Add the minimum delay of the window, and fit the hull."""
        log_ns = stream.log_ns
        if log_ns is None:
            return Unknown("NO_LOG_TIME", n=len(stream))
        delays = log_ns - stream.t_ns
        at = int(np.argmin(delays))
        if not self._points:
            self._origin = int(stream.t_ns[at]), int(delays[at])
        point = (int(stream.t_ns[at]) - self._origin[0]) / NS, (int(delays[at]) - self._origin[1]) / NS
        self._points = [
            *(self._points if len(self._points) < self.settings.max_windows else self._points[::2]),
            point,
        ]
        if len(self._points) < self.settings.min_windows:
            return Unknown("LEARNING", n=len(stream))
        self._age += 1
        if self._age % self.settings.fit_interval == 1:
            self._last = self._fit(stream.stream.clock)
        return self._last

    def _fit(self, clock: str) -> Finding | Unknown:
        points = np.array(self._points)
        points = points[np.unique(points[:, 0], return_index=True)[1]]
        drift, slope, uncertain = max(_drift_of(points), _drift_of(points[-self.settings.recent_windows :]))
        if drift > self.settings.max_clock_drift_ppm and clock != "utc":
            return Unknown(
                "OTHER_TIME", "its stamps and the log times are of different time scales", len(points)
            )
        evidence = {"slope_ppm": slope, "uncertain_ppm": uncertain}
        return Finding({"drift": drift}, len(points), evidence)


def _drift_of(points: Floats) -> tuple[float, float, float]:
    """Return drift less uncertainty, slope and uncertainty, ppm, of delays (n, 2) over time."""
    slope, above = _fit_below(points)
    uncertain = 2 * SIGMA_PER_MAD * float(np.median(above)) / float(np.ptp(points[:, 0]))
    halves = [_fit_below(half)[0] for half in np.array_split(points, 2)]
    steady = min(abs(each) for each in halves) if halves[0] * halves[1] > 0 else 0.0
    return max(0.0, min(abs(slope), 2 * steady) - uncertain) * 1e6, slope * 1e6, uncertain * 1e6


def _fit_below(points: Floats) -> tuple[float, Floats]:
    """Return the slope of the lower hull of points (n, 2) below their middle, and their heights above it."""
    hull: list[tuple[float, float]] = []
    for x, y in points.tolist():
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    middle = float(np.mean(points[:, 0]))
    right = next(i for i, (x, _) in enumerate(hull) if x >= middle)
    (x0, y0), (x1, y1) = hull[max(0, right - 1)], hull[max(1, right)]
    slope = (y1 - y0) / (x1 - x0)
    return slope, points[:, 1] - (y0 + slope * (points[:, 0] - x0))


def _turns_down(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])
