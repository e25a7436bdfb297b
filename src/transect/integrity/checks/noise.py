"""S05: is a signal as quiet as it was, and is the bias of an inertial sensor at rest what it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.engine.nodes import param
from transect.geometry.robust import NORMAL
from transect.integrity.baselines import WINDOWS, Usual
from transect.integrity.checks._signals import Signals, names_in
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import Imu

GYRO, ACC = ("gyro_x", "gyro_y", "gyro_z"), ("acc_x", "acc_y", "acc_z")
NAMES = (*ACC, *GYRO)
STILL_TURN, STILL_FORCE = 0.02, 0.1
"""rad/s and m/s2: change of a window's mean from the one before that is no motion."""
ORDER, PERCENT, WITHIN = 3, 86, 1.4758
"""Of the differences that leave motion out; their percentile, which outliers cannot spoil, and how many
standard deviations of a normal distribution it is."""
SCALE = float(np.sqrt(20.0))
"""Standard deviation of third differences over that of a sample."""
SAMPLES, FEWEST, LONGEST_S = 200, 24, 4.0
"""Samples that tell a noise, and at least; the newest, of so many seconds at most."""
UNCERTAIN = 1.2
"""Deviation of the logarithm of the noise of n samples, times the root of n."""
NEVER = 1e-12
"""Noise of a column that never changed."""
MANY = 5.0
"""Deviations that are no chance."""
LEARNED = 8
"""Windows that tell the usual noise."""
VISIBLE = float(np.log(2.0))
"""What must be no chance for a noise to be judged: twice the usual one."""
ALIKE = float(np.log(1.3))
"""By what the noise may differ between rest and motion, for motion to be no matter."""
AT_MOST_SUSPECT = 0.2
"""Score of a signal that is noisier in motion: the ground may have changed."""


class Noise(Check, id="S05", group="signal", version=4, least=5):
    """``sigma / sigma_0`` over the worst column and over all together; at rest ``|mean - b_0| / sigma_b``.

    `sigma` is that of third differences, by their 86th percentile, over the newest 200 samples, and at least
    the smallest step of the signal, so motion, single outliers and coarse numbers do not count. `sigma_0` is
    the median of the first windows, at rest and in motion each by itself, and anew where other columns have
    values; a ratio counts if it is more than 5
    deviations of theirs and of chance, in two windows in a row: in the first the robot may set off. Where
    twice the noise would be less than that (vibration) it is UNKNOWN, and in motion where it is not what it
    is at rest; in motion it is SUSPECT at most. For inertial sensors at rest `sigma_0` is ``N sqrt(f)`` where
    the densities N of the data sheet are given, and their bias is judged: `b_0` and `sigma_b` are median and
    deviation of the means of the first windows at rest. Of accelerometers the bias is that of the size of
    gravity, since the robot may stand askew. At rest means that no peer moves, and that the means are those
    of the window before.

    Motive: Document 001, Table 2: Allan parameters of its inertial sensor.
    """

    ratio = Limit(1.5, 3.0, "NOISE", "", "noise over the usual noise")
    bias = Limit(3.0, 10.0, "BIAS", "", "change of the mean in its usual deviations")
    gyro_density: float = param(0.0, ge=0.0, unit="rad/s/sqrt(Hz)", doc="of the data sheet; 0: learned")
    acc_density: float = param(0.0, ge=0.0, unit="m/s2/sqrt(Hz)", doc="of the data sheet; 0: learned")

    def reset(self) -> None:
        """Nothing is known of the sensor yet."""
        self._usual: defaultdict[tuple[bool, bytes], list[Floats]] = defaultdict(list)
        self._coarse: dict[bytes, Floats] = {}
        self._ratio = 0.0
        self._bias = [Usual(least=10) for _ in range(4)]
        self._before: Floats | None = None

    def look(self, stream: Window[Signals], peers: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Compare noise, and at rest means, with those of the first windows."""
        names = names_in(stream)
        if not names:
            return Unknown("NO_NUMBERS", n=len(stream))
        moving = self._moves(stream, names, peers)
        past = stream.history(min(LONGEST_S, stream.seconds * SAMPLES / len(stream)))
        ratio, why = self._judge_noise(past, names, moving)
        statistics = {"ratio": ratio}
        if not moving and issubclass(stream.stream.type, Imu) and stream.has(*GYRO, *ACC):
            statistics["bias"] = self._judge_bias(stream)
        if np.isnan(list(statistics.values())).all():
            return Unknown(why, n=len(past))
        return Finding(statistics, len(past), floor=AT_MOST_SUSPECT if moving else 0.0)

    def _moves(self, stream: Window[Any], names: Sequence[str], peers: Sequence[Window[Any]]) -> bool:
        """Tell whether the robot, or what is measured, moves: by peers, and by means that change."""
        mean, before = _means_of(stream.array(*names)), self._before
        self._before = mean
        if issubclass(stream.stream.type, Imu):
            return before is None or bool(is_moving(peers)) or not _is_still(mean, before)
        return bool(is_moving([stream, *peers]))

    def _judge_noise(self, past: Window[Any], names: Sequence[str], moving: bool) -> tuple[float, str]:
        """Return the noise over the usual one, NaN if it cannot be told, and then why."""
        values = past.array(*names)
        there = np.isfinite(values).any(axis=0)
        values, columns = values[:, there], there.tobytes()
        sigma = self._find_noise(values[np.isfinite(values).all(axis=1)], columns)
        if sigma is None:
            return np.nan, "TOO_FEW"
        given = self._given(past, names)
        given = None if given is None else given[there]
        known, logs = self._usual[moving, columns], np.log(sigma)
        if len(known) < LEARNED and given is None:
            known.append(logs)
            return np.nan, "LEARNING"
        excess = _find_excess(logs, np.array(known).reshape(-1, len(logs)), given, len(values))
        usual = np.median(known, axis=0) if known else logs
        if len(known) < WINDOWS and float(np.max(logs - usual)) < np.log(self.ratio.warn):
            known.append(logs)
        if excess is None:
            return np.nan, "UNEVEN"
        if moving and not self._is_alike(columns):
            return np.nan, "MOVING"
        before, self._ratio = self._ratio, float(np.exp(excess))
        return min(self._ratio, before), ""

    def _is_alike(self, columns: bytes) -> bool:
        """Tell whether motion leaves the noise of these columns as it is at rest."""
        rest, way = (self._usual[moving, columns] for moving in (False, True))
        if len(rest) < LEARNED or len(way) < LEARNED:
            return False
        return bool((np.abs(np.median(rest, axis=0) - np.median(way, axis=0)) < ALIKE).all())

    def _find_noise(self, values: Floats, columns: bytes) -> Floats | None:
        """Return the noise (k,) of values (n, k), at least their smallest step; None of too few samples.

        `columns` are those that have values: others have other steps.
        """
        if len(values) < FEWEST:
            return None
        steps = np.abs(np.diff(values, axis=0))
        coarse = np.min(steps, axis=0, where=steps > 0, initial=np.inf)
        coarse = self._coarse[columns] = np.minimum(self._coarse.get(columns, np.inf), coarse)
        third = np.abs(np.diff(values, n=ORDER, axis=0))
        sigma = np.percentile(third, PERCENT, axis=0) / (WITHIN * SCALE)
        return np.maximum(sigma, np.where(np.isfinite(coarse), coarse, NEVER))

    def _given(self, past: Window[Any], names: Sequence[str]) -> Floats | None:
        """Return the logarithms of the noise that data sheets tell, None where they tell not all."""
        if names != NAMES or not (self.gyro_density and self.acc_density):
            return None
        step = float(np.nanmedian(past.steps_s))
        return np.log(np.repeat([self.acc_density, self.gyro_density], 3) / np.sqrt(step))

    def _judge_bias(self, imu: Window[Any]) -> float:
        """Return by how many deviations the means of a window at rest are off, NaN while that is learned."""
        values = imu.array(*GYRO, *ACC)
        mean = np.mean(values, axis=0)
        if not np.isfinite(mean).all():
            return np.nan
        level = np.append(mean[:3], np.linalg.norm(mean[3:]))
        middle, spread = (np.array([getattr(b, what) for b in self._bias]) for what in ("value", "spread"))
        sigma = np.std(np.diff(values, axis=0), axis=0) / np.sqrt(2)
        floor = np.append(sigma[:3], np.max(sigma[3:])) / np.sqrt(len(imu))
        moved = float(np.max(np.abs(level - middle) / np.maximum(spread, floor)))
        if not moved > self.bias.warn:
            for known, value in zip(self._bias, level, strict=True):
                known.learn(float(value))
        return moved


def _find_excess(logs: Floats, known: Floats, given: Floats | None, n: int) -> float | None:
    """Return by how much the logarithm of a noise is above the usual; None if twice as much would be chance.

    Parameters
    ----------
    logs : (k,) array
        By column.
    known : (m, k) array
        Of the windows that it is held against.
    given : (k,) array or None
        What is held against instead, where it is known.
    n : int
        Samples.
    """
    usual = given if given is not None else np.median(known, axis=0)
    alive = usual > np.log(NEVER) / 2
    logs, known, usual = logs[alive], known[:, alive], usual[alive]
    # Scatter about their own median: all windows may differ from a given noise by the same factor.
    rests = known - np.median(known, axis=0) if len(known) else known
    found: list[float] = []
    for over, rest, columns in (
        (
            (logs - usual, rests, 1),
            (np.mean(logs - usual, keepdims=True), np.mean(rests, axis=1, keepdims=True), len(logs)),
        )
        if alive.any()
        else ()
    ):
        spread = NORMAL * np.median(np.abs(rest), axis=0) if len(rest) else np.zeros(len(over))
        least = MANY * np.maximum(spread, UNCERTAIN / np.sqrt(n * columns))
        found += np.where(over > least, over, np.minimum(over, 0.0))[least < VISIBLE].tolist()
    return max(found, default=None)


def _means_of(values: Floats) -> Floats:
    """Return the means (k,) of what columns (n, k) have, NaN of those that have nothing."""
    there = np.isfinite(values)
    count = there.sum(axis=0)
    return np.where(count > 0, np.sum(values, axis=0, where=there) / np.maximum(count, 1), np.nan)


def _is_still(mean: Floats, before: Floats) -> bool:
    """Tell whether means (6,) of accelerations and rates are those of the window before.

    Columns without values do not tell; without any turn rate nothing does.
    """
    change, known = np.abs(mean - before), np.isfinite(mean - before)
    turns = np.linalg.norm(np.nan_to_num(mean[3:])) > 5 * STILL_TURN
    least = np.repeat([STILL_FORCE, STILL_TURN], 3)
    return bool(known[3:].any() and not (change > least)[known].any() and not turns)
