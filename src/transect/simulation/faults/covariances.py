"""Uncertainties that cannot be, or that hide every error: what a sensor or an estimator says of itself.

They stand in columns `*covariance`, matrices row by row, and `std_*`, one standard deviation each. A gate
compares an innovation with its covariance ``S = H P H' + R``. No log has S itself. So a gate that never
refuses is made from what S is made of: P or R, as they are declared, are far too large.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Mask
from transect.recording import Recording, Stream
from transect.types import Imu, NavFix, Odometry, Pose, RigidBodyState, Twist

from ._columns import change_of, flat_values, with_flat
from ._model import Change, Event, Fault

DECLARING = (RigidBodyState, NavFix, Pose, Odometry, Twist, Imu)
DECLARES = "samples with a covariance or standard deviations"


def _matrices(stream: Stream) -> dict[str, int]:
    """Return the columns of covariances, and how many rows the matrices have."""
    kinds = {f.name: f.type for f in stream.table.schema if f.name.endswith("covariance")}
    sizes = {name: kind.list_size for name, kind in kinds.items() if pa.types.is_fixed_size_list(kind)}
    return {name: math.isqrt(size) for name, size in sizes.items() if size == math.isqrt(size) ** 2}


def _deviations(stream: Stream) -> list[str]:
    return [name for name in stream.columns if name.startswith("std_")]


def declares(stream: Stream, recording: Recording) -> bool:
    """Tell whether samples say how uncertain they are."""
    return bool(_matrices(stream)) or bool(_deviations(stream))


def _alter(
    stream: Stream,
    inside: Mask,
    matrix: Callable[[Floats], Floats],
    deviation: Callable[[Floats], Floats],
    fraction: float,
) -> Change:
    """Return a stream with other covariances (n, k, k) and standard deviations (n,) in some samples."""
    table = stream.table
    for name, size in _matrices(stream).items():
        values = flat_values(table, name)[0].reshape(-1, size, size)
        changed = np.where(inside[:, None, None], matrix(values), values)
        table = with_flat(table, name, changed.reshape(-1))
    for name in _deviations(stream):
        values, _ = flat_values(table, name)
        table = with_flat(table, name, np.where(inside, deviation(values), values))
    names = [*_matrices(stream), *_deviations(stream)]
    return change_of(stream, table, names, np.full(len(stream), fraction))


def correlate_too_much(stream: Stream, event: Event) -> Change:
    """Let two components of a covariance be correlated by more than 1; deviations become negative."""
    excess = event.severity * event.parameters["excess"]
    pick = event.generator(stream.name, "components")

    def matrix(values: Floats) -> Floats:
        known = np.flatnonzero((np.diagonal(values, axis1=1, axis2=2) > 0).any(axis=0))
        if len(known) < 2:
            return values
        i, j = pick.choice(known, 2, replace=False)
        result = values.copy()
        result[:, i, j] = result[:, j, i] = (1.0 + excess) * np.sqrt(values[:, i, i] * values[:, j, j])
        return result

    return _alter(stream, event.inside(stream), matrix, lambda sigma: -event.severity * sigma, event.severity)


def deny_uncertainty(stream: Stream, event: Event) -> Change:
    """Declare no uncertainty at all."""
    return _alter(stream, event.first_part(stream), np.zeros_like, np.zeros_like, 1.0)


def exaggerate(stream: Stream, event: Event) -> Change:
    """Declare an uncertainty larger than anything that a sensor could mean."""
    factor = 10.0 ** (event.severity * event.parameters["decades"])
    return _scale(stream, event, factor)


def widen_gate(stream: Stream, event: Event) -> Change:
    """Declare so much uncertainty that a gate refuses nothing."""
    return _scale(stream, event, 1.0 + event.severity * (event.parameters["factor"] - 1.0))


def _scale(stream: Stream, event: Event, factor: float) -> Change:
    """Multiply standard deviations by a factor, and covariances by its square."""
    inside = event.inside(stream)
    return _alter(stream, inside, lambda C: C * factor**2, lambda sigma: sigma * factor, event.severity)


FAULTS = (
    Fault(
        "covariance_indefinite",
        "two components of a covariance are correlated by more than 1; standard deviations are negative",
        "the correlation is 2",
        DECLARING,
        correlate_too_much,
        parameters={"excess": 1.0},
        unit="correlation above 1",
        reasons=("COV_INVALID",),
        able=declares,
        needs=DECLARES,
    ),
    Fault(
        "covariance_zero",
        "covariances and standard deviations are zero",
        "for all of the window",
        DECLARING,
        deny_uncertainty,
        reasons=("COV_INVALID",),
        able=declares,
        needs=DECLARES,
    ),
    Fault(
        "covariance_huge",
        "covariances and standard deviations are far too large",
        "standard deviations are a million times as large",
        DECLARING,
        exaggerate,
        parameters={"decades": 6.0},
        unit="decades of the standard deviation",
        reasons=("COV_INVALID", "GATE_INERT", "NIS"),
        able=declares,
        needs=DECLARES,
    ),
    Fault(
        "inert_gate",
        "declared uncertainties are so large that a gate never refuses anything",
        "standard deviations are a hundred times as large",
        DECLARING,
        widen_gate,
        parameters={"factor": 100.0},
        unit="factor on the standard deviation",
        reasons=("GATE_INERT", "NIS"),
        able=declares,
        needs=DECLARES,
    ),
)
