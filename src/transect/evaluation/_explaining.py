"""Why two time axes do not meet: spans, overlap, rates, and the likeliest mistake."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Ints
from transect.base.clocks import NS
from transect.geometry.interpolation import nearest_index

UNITS = ((1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds"))
"""What stamps may have been written in, where seconds were expected."""


def explained(reference: Ints, estimate: Ints, limit_ns: int) -> tuple[str, str]:
    """Return why stamps do not meet, and what to try.

    Parameters
    ----------
    reference, estimate : (n,), (m,) int64
        Nanoseconds.
    limit_ns : int
        How far apart they may be.
    """
    spans = [(int(t.min()), int(t.max())) for t in (reference, estimate)]
    overlap = min(b for _, b in spans) - max(a for a, _ in spans)
    said = [f"{called} {_span(*span)}, {_rate(t)}" for called, span, t in
            zip(("reference", "estimate"), spans, (reference, estimate), strict=True)]  # fmt: skip
    if unit := _likely_unit(spans):
        return "; ".join([*said, f"one of them seems to be in {unit}"]), "convert its stamps to seconds"
    if overlap < 0:
        offset = (spans[0][0] - spans[1][0]) / NS
        why = "; ".join([*said, f"they do not overlap: {-overlap / NS:.6g} s lie between them"])
        return why, f"--offset {offset:.3f} puts their beginnings together; --offset auto searches"
    gap = _median_gap(reference, estimate)
    why = "; ".join(
        [*said, f"they overlap for {overlap / NS:.6g} s", f"half of the stamps are {gap / NS:.3g} s apart"]
    )
    if gap > limit_ns:
        return why, f"--max-diff {1.1 * gap / NS:.3g}, or --pairs interpolate"
    return why, "--least 0 takes the pairs that there are"


def _span(first_ns: int, last_ns: int) -> str:
    return f"from {first_ns / NS:.3f} to {last_ns / NS:.3f} s"


def _rate(t_ns: Ints) -> str:
    if len(t_ns) < 2 or t_ns.max() == t_ns.min():
        return f"{len(t_ns)} poses"
    return f"{len(t_ns)} poses at {(len(t_ns) - 1) / (int(t_ns.max()) - int(t_ns.min())) * NS:.3g} Hz"


def _likely_unit(spans: list[tuple[int, int]]) -> str:
    """Return the unit that would bring one axis to the other, or ""."""
    firsts = [max(abs(a), abs(b)) for a, b in spans]
    if min(firsts) == 0:
        return ""
    ratio = max(firsts) / min(firsts)
    return next((name for factor, name in UNITS if 0.5 < ratio / factor < 2), "")


def _median_gap(reference: Ints, estimate: Ints) -> float:
    """Return the median distance (ns) of the stamps of the shorter axis to the other, where they overlap."""
    short, long = sorted((reference, estimate), key=len)
    axis = np.sort(long)
    inside = short[(short >= axis[0]) & (short <= axis[-1])]
    if not len(inside):
        inside = short
    return float(np.median(np.abs(inside - axis[nearest_index(axis, inside)])))
