"""Which of four numbers is the scalar part of a quaternion.

CDFF's four numbers are x, y, z, w; some logs have w first, and nothing says so. A joint that turns about one
axis gives it away: read in the wrong order its scalar part is zero throughout, as if the body were always
turned by exactly half a turn, about an axis that wanders.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from transect.base.arrays import Floats

Order = Literal["xyzw", "wxyz"]
FEW = 10
"""Below this many attitudes nothing is concluded."""
_ZERO, _UNIT, _TURNED, _STILL = 1e-9, 1e-3, 1e-3, 1e-6
_HINT = 'quaternion="wxyz" or "xyzw" decides it'


def order_of(numbers: Floats, positions: Floats | None) -> tuple[Order, str]:
    """Return the order of some quaternions, and a note where it is not the usual one or may not be.

    Parameters
    ----------
    numbers : (n, 4) array
        As recorded.
    positions : (n, 3) array or None
        A body that also moves may well be turned by half a turn all the time (a z axis that points down), so
        only that of a joint, whose position is constant, is read as w, x, y, z.
    """
    q = numbers[np.isfinite(numbers).all(axis=1)]
    if len(q) < FEW or (np.abs(np.linalg.norm(q, axis=1) - 1.0) > _UNIT).any():
        return "xyzw", ""
    if (np.abs(q[:, 3]) > _ZERO).any() or np.median(np.abs(q[:, 0])) < 0.5:
        return "xyzw", ""
    turned = np.ptp(q, axis=0).max() > _TURNED
    if turned and _one_axis(q[:, 1:]) and _still(positions):
        return "wxyz", (
            "orientations are written scalar first (read as x, y, z, w the body would always be turned by "
            f"exactly 180 degrees, about a wandering axis): read as w, x, y, z; {_HINT}"
        )
    return "xyzw", (
        "orientations have no scalar part throughout: half a turn all the time, or written scalar first; "
        f"read as x, y, z, w; {_HINT}"
    )


def _one_axis(vectors: Floats) -> bool:
    """Tell whether all vectors lie along one line."""
    values = np.linalg.svd(vectors, compute_uv=False)
    return bool(values[1] <= _TURNED * values[0])


def _still(positions: Floats | None) -> bool:
    if positions is None:
        return True
    known = positions[np.isfinite(positions).all(axis=1)]
    return not len(known) or bool(np.ptp(known, axis=0).max() <= _STILL)
