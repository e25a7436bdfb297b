"""S03: are single samples outliers among their neighbours."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.engine.offsets import MotionSignal, signals_of
from transect.geometry.robust import SIGMA_PER_MAD
from transect.integrity.checks._signals import Signals, names_in
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import EARTH_RADIUS_M, Moving
from transect.integrity.windows import Window

HARMLESS_DEVIATION = {"m/s2": 1.0, "rad/s": 0.2, "m": 0.5, "m/s": 0.1, "rad": 0.02, "N": 5.0}
"""Smallest deviation of a spike, by unit."""
TURN_RATES = ("wz", "gyro_x", "gyro_y", "gyro_z")


@dataclass(frozen=True)
class SpikeSettings:
    """Numbers of the Hampel filter and of the count of spikes."""

    filter_width: int = 11
    outlier_sigmas: float = 6.0
    min_samples: int = 40  # Samples that are filtered; the newest ones if the window has fewer.
    recent_samples: int = 40  # Samples, in whole windows, whose ratio of spikes is judged.
    # Windows after one with spikes that are not used as a baseline: a fault has milder moments.
    fault_windows: int = 5
    max_peer_offset_ns: int = 150_000_000  # Time between a change and that of a peer, and ...
    min_felt_ratio: float = 0.5  # ... minimum ratio of it that the peer shows.
    max_acceleration: float = 10.0  # m/s2 or rad/s2 that a robot may reach.


class Spike(Check, id="S03", group="signal", version=5, k_on=1):
    """Fraction of the samples with ``|x - median_11| / (1.4826 MAD_11) > 6`` (Hampel filter), worst column.

    The last five samples of a window are judged with the next one. The sigma is at least that of the
    whole stretch (from the 80th percentile, as vibration has heavy tails) and the smallest step of the
    signal. Three consecutive samples that deviate are a change of the signal. The ratio is that of the
    newest 40 samples, in windows with a spike; a single one does not count, nor does the usual number of
    the column plus 3 sigma, as vibrating sensors have some. A change of a turn rate does not count either
    if another sensor measured at least half of it at the same time: a robot stumbles. The spikes of the
    window are masked.

    Motive: SDI: the radar's "noisier data"; single position outliers.
    """

    settings = SpikeSettings()

    share = Limit(0.005, 0.05, "SPIKES", "", "fraction of the samples that are outliers")

    def reset(self) -> None:
        """Start without counts."""
        self._counts: deque[tuple[Ints, int]] = deque()
        self._usual, self._samples, self._flagged = np.zeros(1, np.int64), 0, 0

    def evaluate(self, stream: Window[Signals], peers: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Filter the newest samples that have all their neighbours."""
        names = names_in(stream)
        if not names:
            return Unknown("NO_NUMBERS", n=len(stream))
        wanted = max(len(stream), self.settings.min_samples) + self.settings.filter_width - 1
        past = stream.history(stream.seconds * min(60.0, 1 + wanted / max(len(stream), 1)))
        values = past.array(*names)[-wanted:]
        if len(values) < 3 * self.settings.filter_width:
            return Unknown("TOO_FEW", n=len(stream))
        step = float(np.nanmedian(past.steps_s))
        out = find_spikes(
            values,
            np.array([_harmless_deviation(past, name, step, self.settings) for name in names]),
            self.settings,
        )
        t_ns = past.t_ns[-len(values) :]
        for column in np.flatnonzero(out.any(axis=0)).tolist():
            if names[column] in TURN_RATES:
                out[:, column] &= ~_find_motion(t_ns, values[:, column], out[:, column], peers, self.settings)
        shares, spikes = self._spike_ratios(out[-len(stream) :].sum(axis=0), min(len(stream), len(out)))
        worst = int(np.argmax(shares))
        region = (
            _region_of_window(out, len(stream), self.settings) if shares[worst] > self.share.warn else None
        )
        found = {"spikes": float(spikes[worst])}
        return Finding({"share": float(shares[worst])}, len(out), found, region=region)

    def _spike_ratios(self, spikes: Ints, samples: int) -> tuple[Floats, Ints]:
        """Return the ratio (k,) of spikes in the newest samples, 0 if usual, and their number (k,).

        `spikes` (k,) are those of a window with this number of samples.
        """
        self._counts.append((spikes, samples))
        while sum(n for _, n in self._counts) - self._counts[0][1] >= self.settings.recent_samples:
            gone, count = self._counts.popleft()
            self._usual = self._usual + (0 if self._flagged else gone)
            self._samples, self._flagged = self._samples + count, max(0, self._flagged - 1)
        newest = np.sum([each for each, _ in self._counts], axis=0)
        total = sum(n for _, n in self._counts)
        expected = total * self._usual / max(self._samples, self.settings.recent_samples)
        more = (spikes > 0) & (newest > 1 + expected + 3 * np.sqrt(expected))
        if more.any():
            self._flagged = len(self._counts) + self.settings.fault_windows
        return np.where(more, newest / total, 0.0), newest


def _find_motion(
    t_ns: Ints, values: Floats, out: Mask, peers: Sequence[Window[Moving]], settings: SpikeSettings
) -> Mask:
    """Return which outliers (n - 10,) a peer measured as well, as a change of its own turn rate."""
    half, felt = settings.filter_width // 2, np.zeros_like(out)
    signals = [each for each in (_turn_rate_of(peer, t_ns) for peer in peers) if each is not None]
    for k in np.flatnonzero(out).tolist():
        near = values[k : k + settings.filter_width]
        min_change = settings.min_felt_ratio * abs(values[k + half] - np.median(near))
        for signal in signals:
            around = (signal.t_ns >= t_ns[k]) & (signal.t_ns <= t_ns[k + settings.filter_width - 1])
            then = around & (np.abs(signal.t_ns - t_ns[k + half]) <= settings.max_peer_offset_ns)
            if np.count_nonzero(around) >= half and then.any():
                change = np.abs(signal.values[then] - np.median(signal.values[around]))
                felt[k] |= bool(np.max(change) >= min_change)
    return felt


def _turn_rate_of(peer: Window[Moving], t_ns: Ints) -> MotionSignal | None:
    """Return the turn rate of another message around times (n,), None if it has none."""
    if np.array_equal(peer.t_ns, t_ns[-len(peer) :]):
        return None
    past = peer.history(peer.seconds + (int(t_ns[-1]) - int(t_ns[0])) / NS)
    found = next(signals_of(past.as_stream()), None) if len(past) else None
    return found if found is not None and found.name == "rate of turn" else None


def _region_of_window(out: Mask, samples: int, settings: SpikeSettings) -> Mask:
    """Return (samples, 1) the outliers of the window; the last five are not known yet."""
    is_outlier = np.concatenate([out.any(axis=1), np.zeros(settings.filter_width // 2, np.bool_)])
    return np.pad(is_outlier, (max(0, samples - len(is_outlier)), 0))[-samples:, None]


def _harmless_deviation(window: Window[Signals], name: str, step_s: float, settings: SpikeSettings) -> float:
    """Return the smallest deviation from its neighbours that makes a sample of a column a spike."""
    if name in ("lat", "lon"):
        return HARMLESS_DEVIATION["m"] / EARTH_RADIUS_M
    unit = window.stream.units.get(name, "")
    deviation = HARMLESS_DEVIATION.get(unit, 0.0)
    return (
        max(deviation, settings.max_acceleration * step_s)
        if unit in ("m/s", "rad/s") and not name.startswith("gyro")
        else deviation
    )


def find_spikes(values: Floats, harmless: Floats, settings: SpikeSettings) -> Mask:
    """Return (n - 10, k) which samples of columns (n, k) are outliers, without the first and last five.

    `harmless` (k,) is the smallest deviation of an outlier.
    """
    half = settings.filter_width // 2
    near = np.lib.stride_tricks.sliding_window_view(values, settings.filter_width, axis=0)
    middle = np.median(near, axis=-1)
    spread = SIGMA_PER_MAD * np.median(np.abs(near - middle[..., None]), axis=-1)
    off = np.abs(values[half:-half] - middle)
    usual = np.percentile(off, 80, axis=0, keepdims=True) / 1.2816  # 80 % of a normal distribution, in sigmas
    steps = np.abs(np.diff(values, axis=0))
    smallest = np.min(steps, axis=0, where=steps > 0, initial=np.inf)
    coarse = np.where(np.isfinite(smallest), smallest, 0.0)
    out = off > np.maximum(settings.outlier_sigmas * np.maximum(np.maximum(spread, usual), coarse), harmless)
    # Three consecutive outliers are a change of the signal.
    edge = np.zeros((1, out.shape[1]), np.bool_)
    before, after = np.concatenate([edge, out[:-1]]), np.concatenate([out[1:], edge])
    second = np.concatenate([edge, before[:-1]]), np.concatenate([after[1:], edge])
    return out & ~((before & after) | (before & second[0]) | (after & second[1]))
