"""Forces at the tool from the torques of the joints (SIS appendix D).

The forces are those that the tool exerts, in the arm's cylindrical frame: F_R outwards in the plane of the
arm, F_T across it (the way joint 1 turns), F_Z down. Table 12 says "tool frame", but no angle of a tool is in
the equations.

With the tool at C_i outwards and S_i below the axis of joint i, ``m_i = C_i F_Z - S_i F_R`` for joints 2 to
4; F_R and F_Z are their least squares over the joints whose motors have power. Joint 1 gives F_T. There the
printed ``F_T = (m_0 + F_R (d_1 + t_y)) / R`` is the inverse of the statics only with a minus (spec, 4.13):
`sign="geometric"` is that, `sign="sis"` the SIS to the letter. In b_1 the SIS prints one minus that can only
be a plus, as its other terms are; that is not offered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry.array_checks import floats

from .arm import Arm, Tool
from .kinematics import levers
from .links import Frames, Links, cross, outer_masses

Sign = Literal["sis", "geometric"]
INVALID = -99999.0
"""What the archive has where there is no answer; NaN inside transect."""
_SINGULAR = 1e-12
"""Determinant of the normal equations, as a part of their trace squared, that counts as none."""


@dataclass(frozen=True, eq=False)
class Forces:
    """Forces that a tool exerts."""

    values: Floats  # (..., 3), F_R, F_T, F_Z in the order of Table 12, N
    # false for a tool that is not rigid on the wrist: the forces then act at the attach point of a hanging
    # tool, or on the forearm with the camera, whose place joint 4 does not change
    at_tool: bool


def gravity_moments(
    arm: Arm, q: ArrayLike, links: Links | None = None, *, with_payload: bool = False
) -> Floats:
    """Moments of the links' weights about the axes of the joints.

    Parameters
    ----------
    q : (..., 4)
        Joint angles, rad.
    links : Links, optional
        Of the grapple phase; without it `Links.of(arm)`.
    with_payload : bool
        Whether what is grappled counts as weight. The SIS does not say; if not, it is a force of the tool.

    Returns
    -------
    (..., 4)
        N m, positive where gravity turns the joint forwards.
    """
    bodies = links or Links.of(arm)
    frames = Frames.of(arm, q)
    stack = outer_masses(bodies, frames, with_payload=with_payload)
    turning = [
        np.einsum(
            "i...,i...->...",
            frames.rotation[joint, :, 2],
            cross(stack.moment[joint + 1] - stack.mass[joint + 1] * frames.origin[joint], bodies.gravity),
        )
        for joint in range(4)
    ]
    return np.stack(turning, axis=-1)


def moments(
    arm: Arm, q: ArrayLike, tau: ArrayLike, links: Links | None = None, *, with_payload: bool = False
) -> Floats:
    """Joint moments with gravity considered, (..., 4) N m: ``m_i = tau_i + moment_iz``.

    `tau` (..., 4) are the torques of the motors in N m, the rest as in `gravity_moments`. Motors and gravity
    together push the tool; that the SIS has both signs alike cannot be checked with its numbers.
    """
    return floats("torques", tau, (..., 4)) + gravity_moments(arm, q, links, with_payload=with_payload)


def end_effector_forces(
    arm: Arm,
    q: ArrayLike,
    moment: ArrayLike,
    tool: Tool | str | int,
    power: ArrayLike = (1.0, 1.0, 1.0, 1.0),
    *,
    sign: Sign = "sis",
    invalid: float = np.nan,
) -> Forces:
    """Forces that the tool exerts on what it touches.

    Parameters
    ----------
    q : (..., 4)
        Joint angles from the encoders, rad.
    moment : (..., 4)
        As `moments` gives them, N m.
    power : (..., 4)
        1 for a joint whose motor has power, else 0: bits 0 to 3 of `stat`.
    sign : str
        Of the term of F_R in F_T; see the module.
    invalid : float
        What to give where fewer than two of joints 2 to 4 have power or their levers are parallel; `INVALID`
        for the archive.
    """
    chosen, m = arm.tool(tool), floats("moments", moment, (..., 4))
    out, down = levers(arm, q, chosen)
    weight = np.broadcast_to(floats("motor power", power, (..., 4)), m.shape)[..., 1:]
    if chosen.kind == "camera":
        weight = weight * [1.0, 1.0, 0.0]
    radial, vertical = _least_squares(out, down, m[..., 1:], weight)
    reach = arm.chain.a[0] + out[..., 0]
    aside = float(arm.chain.d[1] + chosen.offset[1]) * (1.0 if sign == "sis" else -1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        across = (m[..., 0] + radial * aside) / reach
    values = np.stack([radial, across, vertical], axis=-1)
    good = np.isfinite(values).all(axis=-1, keepdims=True)
    return Forces(np.where(good, values, invalid), chosen.kind == "rigid")


def _least_squares(C: Floats, S: Floats, m: Floats, p: Floats) -> tuple[Floats, Floats]:
    """F_R and F_Z (...) of ``m_i = C_i F_Z - S_i F_R``, weighted by `p`; NaN where not determined."""
    pS, pC = p * S, p * C
    a00, a01, a11 = _total(pS, S), -_total(pS, C), _total(pC, C)
    b0, b1 = -_total(pS, m), _total(pC, m)
    determinant = a00 * a11 - a01 * a01
    determined = (np.abs(p.sum(axis=-1)) >= 2.0) & (determinant > _SINGULAR * (a00 + a11) ** 2)
    determinant = np.where(determined, determinant, np.nan)
    return (a11 * b0 - a01 * b1) / determinant, (a00 * b1 - a01 * b0) / determinant


def _total(a: Floats, b: Floats) -> Floats:
    return np.einsum("...i,...i->...", a, b)
