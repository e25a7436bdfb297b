"""Length of a drive and slip of each wheel, on simulated days on Etna with unseen seeds."""

import numpy as np

from benchmarks import _harness
from transect.datasets.ameds.robot import locomotion
from transect.evaluation.traverse import traverse_of
from transect.recording import arrow
from transect.simulation.day import Day, WorldOptions, simulate

DURATION_S = 90.0
UNSEEN_SEEDS = (201, 202, 203, 204)
STREAMS = ("Gnss/*", "Platform/*")


def length_errors(day: Day) -> tuple[float, float]:
    """Return by how many percent length and way while moving are off."""
    assert day.truth.motion is not None
    true = np.linalg.norm(np.diff(day.truth.motion.position, axis=0), axis=1).sum()
    found = traverse_of(day.recording)
    return 100 * abs(found.length_m / true - 1), 100 * abs(found.moving_m / true - 1)


def slip_error(day: Day) -> float:
    """Return the RMS error of the slip of a second, of all wheels."""
    rim, ground = (arrow.numbers(day.truth.tables["slip"], name) for name in ("rim", "ground"))
    window = np.ones(51) / 51
    rim, ground = (np.column_stack([np.convolve(w, window, "valid") for w in v.T]) for v in (rim, ground))
    found = locomotion.slip_report(day.recording).stream.array("slip_ratio")[25:-25]
    true = (np.abs(rim) - np.abs(ground)) / np.maximum(np.abs(rim), np.abs(ground))
    error = (found - true)[np.isfinite(found) & (np.abs(ground) > 0.1)]
    return float(np.sqrt(np.mean(error**2)))


def main() -> None:
    for rtk in ("yes", "no", "gaps"):
        days = [
            simulate("etna", WorldOptions(DURATION_S, seed, 0.05, STREAMS, {"rtk": rtk}))
            for seed in UNSEEN_SEEDS
        ]
        length, moved = np.max([length_errors(day) for day in days], axis=0)
        _harness.quality(f"length of a traverse, worst of {len(days)} (rtk {rtk})", length, "%", at_most=2.0)
        _harness.quality(f"way while moving, worst of {len(days)} (rtk {rtk})", moved, "%", at_most=2.0)
        if rtk == "yes":
            slip = max(slip_error(day) for day in days)
            _harness.quality(f"slip of a second, RMS, worst of {len(days)}", slip, "", at_most=0.01)


if __name__ == "__main__":
    main()
