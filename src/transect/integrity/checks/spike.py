"""S03: do single samples stand out from their neighbours."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.engine.offsets import Signal, signals_of
from transect.geometry.robust import NORMAL
from transect.integrity.checks._signals import Signals, names_in
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving
from transect.integrity.windows import Window

NEIGHBOURS = 11
OUTSIDE = 6.0
"""Deviations from the median of the neighbours that are no noise."""
EIGHTY = 1.2816
"""Standard deviations within which 80 % of normally distributed values lie."""
LEAST_SAMPLES = 40
"""Samples that are filtered; the newest ones where the window has fewer."""
NEWEST = 40
"""Samples of which a share is told: those of so many windows, at least."""
LASTING = 5
"""Windows after one with spikes of which nothing is usual: a fault has milder moments."""
HARMLESS = {"m/s2": 1.0, "rad/s": 0.2, "m": 0.5, "m/s": 0.1, "rad": 0.02, "N": 5.0}
"""By unit: smaller ones are no spikes."""
TURN_RATES = ("wz", "gyro_x", "gyro_y", "gyro_z")
SAME_MOMENT_NS, MIN_FELT_RATIO = 150_000_000, 0.5
"""Time between a change and that of a peer, at most, and least part of it that the peer shows."""
BRAKES = 10.0
"""m/s2 (and rad/s2): what a robot can do; a speed may change by that in a step."""
EARTH = 6_371_000.0


class Spike(Check, id="S03", group="signal", version=5, k_on=1):
    """Part of the samples with ``|x - median_11| / (1.4826 MAD_11) > 6`` (Hampel), over the worst column.

    The last five samples of a window wait for their neighbours in the next one. The deviation is at least
    that of the whole stretch (from the 80th percentile, for vibration has heavy tails) and the smallest
    step. Three samples in a row that stand out are a signal that changes, and no spikes. The share is that of
    the newest 40 samples, in windows that have a spike; a single one is none, nor are as many as the column
    usually has, with 3 deviations of chance: shaken sensors have some. Nor is a change of a turn rate that
    another sensor felt at the same moment, at least half of it: a robot stumbles. Those of the window are
    masked.

    Motive: Document 004: the radar's "noisier data"; fixes that are far off one by one.
    """

    share = Limit(0.005, 0.05, "SPIKES", "", "part of the samples that stand out")

    def reset(self) -> None:
        """No spikes are known yet."""
        self._counts: deque[tuple[Ints, int]] = deque()
        self._usual, self._samples, self._flagged = np.zeros(1, np.int64), 0, 0

    def look(self, stream: Window[Signals], peers: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Filter the newest samples that have all their neighbours."""
        names = names_in(stream)
        if not names:
            return Unknown("NO_NUMBERS", n=len(stream))
        wanted = max(len(stream), LEAST_SAMPLES) + NEIGHBOURS - 1
        past = stream.history(stream.seconds * min(60.0, 1 + wanted / max(len(stream), 1)))
        values = past.array(*names)[-wanted:]
        if len(values) < 3 * NEIGHBOURS:
            return Unknown("TOO_FEW", n=len(stream))
        step = float(np.nanmedian(past.steps_s))
        out = find_spikes(values, np.array([_harmless(past, name, step) for name in names]))
        t_ns = past.t_ns[-len(values) :]
        for column in np.flatnonzero(out.any(axis=0)).tolist():
            if names[column] in TURN_RATES:
                out[:, column] &= ~_find_felt(t_ns, values[:, column], out[:, column], peers)
        shares, spikes = self._share(out[-len(stream) :].sum(axis=0), min(len(stream), len(out)))
        worst = int(np.argmax(shares))
        region = _in_window(out, len(stream)) if shares[worst] > self.share.warn else None
        found = {"spikes": float(spikes[worst])}
        return Finding({"share": float(shares[worst])}, len(out), found, region=region)

    def _share(self, spikes: Ints, samples: int) -> tuple[Floats, Ints]:
        """Return by column (k,) the share of the newest samples that are spikes, 0 for no more than usual.

        And how many these are, whatever is usual. `spikes` (k,) are those of a window of so many samples.
        """
        self._counts.append((spikes, samples))
        while sum(n for _, n in self._counts) - self._counts[0][1] >= NEWEST:
            gone, count = self._counts.popleft()
            self._usual = self._usual + (0 if self._flagged else gone)
            self._samples, self._flagged = self._samples + count, max(0, self._flagged - 1)
        newest = np.sum([each for each, _ in self._counts], axis=0)
        total = sum(n for _, n in self._counts)
        expected = total * self._usual / max(self._samples, NEWEST)
        more = (spikes > 0) & (newest > 1 + expected + 3 * np.sqrt(expected))
        if more.any():
            self._flagged = len(self._counts) + LASTING
        return np.where(more, newest / total, 0.0), newest


def _find_felt(t_ns: Ints, values: Floats, out: Mask, peers: Sequence[Window[Moving]]) -> Mask:
    """Return which samples (n - 10,) that stand out a peer shows, too: as a change of its own turn rate."""
    half, felt = NEIGHBOURS // 2, np.zeros_like(out)
    signals = [each for each in (_turn_rate_of(peer, t_ns) for peer in peers) if each is not None]
    for k in np.flatnonzero(out).tolist():
        near = values[k : k + NEIGHBOURS]
        least = MIN_FELT_RATIO * abs(values[k + half] - np.median(near))
        for signal in signals:
            around = (signal.t_ns >= t_ns[k]) & (signal.t_ns <= t_ns[k + NEIGHBOURS - 1])
            then = around & (np.abs(signal.t_ns - t_ns[k + half]) <= SAME_MOMENT_NS)
            if np.count_nonzero(around) >= half and then.any():
                change = np.abs(signal.values[then] - np.median(signal.values[around]))
                felt[k] |= bool(np.max(change) >= least)
    return felt


def _turn_rate_of(peer: Window[Moving], t_ns: Ints) -> Signal | None:
    """Return the size of the turn rate of another message around times (n,), None if it has none."""
    if np.array_equal(peer.t_ns, t_ns[-len(peer) :]):
        return None
    past = peer.history(peer.seconds + (int(t_ns[-1]) - int(t_ns[0])) / NS)
    found = next(signals_of(past.as_stream()), None) if len(past) else None
    return found if found is not None and found.name == "rate of turn" else None


def _in_window(out: Mask, samples: int) -> Mask:
    """Return (samples, 1) which samples of the window stand out; the last five are not known yet."""
    stands = np.concatenate([out.any(axis=1), np.zeros(NEIGHBOURS // 2, np.bool_)])
    return np.pad(stands, (max(0, samples - len(stands)), 0))[-samples:, None]


def _harmless(window: Window[Signals], name: str, step_s: float) -> float:
    """Return by how much a sample of a column may be off from its neighbours without harm."""
    if name in ("lat", "lon"):
        return HARMLESS["m"] / EARTH
    unit = window.stream.units.get(name, "")
    least = HARMLESS.get(unit, 0.0)
    return max(least, BRAKES * step_s) if unit in ("m/s", "rad/s") and not name.startswith("gyro") else least


def find_spikes(values: Floats, harmless: Floats) -> Mask:
    """Return (n - 10, k) which samples of columns (n, k) stand out, but for the first and last five.

    Parameters
    ----------
    harmless : (k,) or (1,) array
        What a sample must be off by at least.
    """
    half = NEIGHBOURS // 2
    near = np.lib.stride_tricks.sliding_window_view(values, NEIGHBOURS, axis=0)
    middle = np.median(near, axis=-1)
    spread = NORMAL * np.median(np.abs(near - middle[..., None]), axis=-1)
    off = np.abs(values[half:-half] - middle)
    usual = np.percentile(off, 80, axis=0, keepdims=True) / EIGHTY
    steps = np.abs(np.diff(values, axis=0))
    smallest = np.min(steps, axis=0, where=steps > 0, initial=np.inf)
    coarse = np.where(np.isfinite(smallest), smallest, 0.0)
    out = off > np.maximum(OUTSIDE * np.maximum(np.maximum(spread, usual), coarse), harmless)
    # Three in a row are a signal that changes.
    edge = np.zeros((1, out.shape[1]), np.bool_)
    before, after = np.concatenate([edge, out[:-1]]), np.concatenate([out[1:], edge])
    second = np.concatenate([edge, before[:-1]]), np.concatenate([after[1:], edge])
    return out & ~((before & after) | (before & second[0]) | (after & second[1]))
