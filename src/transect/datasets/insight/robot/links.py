"""The masses and compliances of the arm's links, and what gravity does to them.

Six bodies: the base (0), the links 1 to 4, and the tool (5), which the SIS gives no mass. Each hangs on its
distal Denavit-Hartenberg frame (the tool on the wrist's), in which its compliance is given. The centre of
mass is printed before the link's own d, a and alpha, but after its joint's turn; so it too is a fixed point
of the distal frame (spec, 4.14).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import TransectError, did_you_mean
from transect.geometry import se3
from transect.robots import load

from .arm import Arm
from .parameters import Parameters

Missing = Literal["substitute", "raise"]
DISTAL = (0, 1, 2, 3, 4, 4)
"""The link frame that each body hangs on."""
_KEYS = ("mass", "cm_x", "cm_y", "cm_z", "vCf", "wCf", "vCm", "wCm")
_STOWED = 2
"""In the grapple phases before this one (Launch-Locked, Stowed) the grapple is folded to the forearm."""
_GRAPPLED = "-Grappled"


@dataclass(frozen=True, eq=False)
class Links:
    """The bodies of the arm in one grapple phase."""

    mass: Floats  # (6,), kg
    centre: Floats  # (6, 3), centres of mass in the distal frames, m
    # (6, 6, 6), displacement (m) and rotation (rad) for force (N) and moment (N m), at and in the distal
    # frame; scaled by `compliance_scale`
    compliance: Floats
    gravity: Floats  # (3,), in ArmBase, m/s2
    payload: float  # mass that hangs on the grapple, kg
    attach: Floats  # (3,), where it does, in the wrist frame, m; NaN without payload
    substitutes: tuple[str, ...]  # what no source gives, and what was taken for it

    @classmethod
    def of(cls, arm: Arm, phase: int | str = "OK-To-Open", missing: Missing = "substitute") -> Links:
        """Return the bodies of an arm.

        The SIS lost most of RA_DEFL_LINK_0, the mass of RA_DEFL_LINK_3_STOWED and all of
        RA_DEFL_LINK_4_UNSTOWED. By reciprocity wCf is the transpose of vCm, and what is printed of the two
        forearms' matrices is equal: these are taken always, and said.

        Parameters
        ----------
        phase : int or str
            Grapple phase by its code or name in SIS Table 15: decides between the stowed and the unstowed
            sets, and what is carried.
        missing : str
            What else to do about lost numbers: `substitute` those of the other set of the link, and nothing
            at all for the base, which is hundreds of times as stiff as the next link; or `raise`.

        Raises
        ------
        MissingParameterError
            If a number cannot be had.
        """
        parameters, name = arm.parameters, _phase(phase)
        chosen = [_body(parameters, *names, missing) for names in _set_names(name)]
        payload = _payload(parameters, name)
        scale = parameters.number("RA_DEFL_GENERAL", "compliance_scale")
        return cls(
            mass=np.array([float(values["mass"]) for values, _ in chosen]),
            centre=_centres(arm, np.array([[values[f"cm_{x}"] for x in "xyz"] for values, _ in chosen])),
            compliance=scale * np.array([_six_by_six(values) for values, _ in chosen]),
            gravity=parameters.number("RA_GRAVITY", "gravity_params.acc_g") * arm.down,
            payload=payload,
            attach=arm.tool("Grapple-Attach").offset[:3] if payload else np.full(3, np.nan),
            substitutes=tuple(note for _, notes in chosen for note in notes),
        )


def _phase(phase: int | str) -> str:
    names: list[str] = load("ida").constants["grapple_phases"]
    known = names if isinstance(phase, str) else range(len(names))
    if phase not in known:
        raise TransectError(f"there is no grapple phase {phase!r}", hint=did_you_mean(str(phase), names))
    return phase if isinstance(phase, str) else names[phase]


def _set_names(phase: str) -> list[tuple[str, str | None]]:
    """The parameter set of each body, and the other one that its link has."""
    stowed = load("ida").constants["grapple_phases"].index(phase) < _STOWED
    now, then = ("STOWED", "UNSTOWED") if stowed else ("UNSTOWED", "STOWED")
    link = "RA_DEFL_LINK_"
    both = [(f"{link}{i}_{now}", f"{link}{i}_{then}") for i in (3, 4)]
    return [(f"{link}0", None), (f"{link}1", None), (f"{link}2", None), *both, (f"{link}5", None)]


def _payload(parameters: Parameters, phase: str) -> float:
    if not phase.endswith(_GRAPPLED):
        return 0.0
    return parameters.number("RA_DEFL_GENERAL", f"{phase.removesuffix(_GRAPPLED).lower()}_mass")


def _body(
    parameters: Parameters, name: str, other: str | None, missing: Missing
) -> tuple[dict[str, Floats], list[str]]:
    """Return the numbers of a parameter set by key, and a note for each source that was not its own."""
    found = {key: _number(parameters, name, other, key, missing) for key in _KEYS}
    notes = [
        f"{name} {', '.join(key for key, (_, who) in found.items() if who == source)}: {source}"
        for source in dict.fromkeys(who for _, who in found.values() if who)
    ]
    return {key: values for key, (values, _) in found.items()}, notes


def _number(
    parameters: Parameters, name: str, other: str | None, key: str, missing: Missing
) -> tuple[Floats, str]:
    """Return a number, and where it comes from unless that is its own set."""
    if parameters.has(name, key):
        return parameters.numbers(name, key), ""
    if key == "wCf" and parameters.has(name, "vCm"):
        return parameters.numbers(name, "vCm").T, "transpose of its vCm"
    if other and parameters.has(other, key):
        alike = key == "vCf" and all(_equal(parameters, name, other, each) for each in ("vCm", "wCm"))
        if alike or missing == "substitute":
            return parameters.numbers(other, key), f"that of {other}"
    if name == "RA_DEFL_LINK_0" and missing == "substitute":
        return np.zeros((3, 3) if key in _KEYS[4:] else ()), "zero"
    return parameters.numbers(name, key), ""  # says what is missing


def _equal(parameters: Parameters, name: str, other: str, key: str) -> bool:
    there = parameters.has(name, key) and parameters.has(other, key)
    return there and np.array_equal(parameters.numbers(name, key), parameters.numbers(other, key))


def _centres(arm: Arm, printed: Floats) -> Floats:
    """Centres of mass (6, 3) in the distal frames: `steps` at zero are the fixed part of each link."""
    distal = printed.copy()
    distal[1:5] = se3.apply(se3.invert(arm.chain.steps(np.zeros(4))), printed[1:5])
    return distal


def _six_by_six(values: dict[str, Floats]) -> Floats:
    return np.block([[values["vCf"], values["vCm"]], [values["wCf"], values["wCm"]]])


@dataclass(frozen=True, eq=False)
class Frames:
    """The link frames, rows last: on a million rows numpy is several times as fast along a long last axis."""

    rotation: Floats  # (5, 3, 3, ...), from each link frame to ArmBase
    origin: Floats  # (5, 3, ...), of each link frame in ArmBase, m

    @classmethod
    def of(cls, arm: Arm, q: ArrayLike) -> Frames:
        """Return the frames at joint angles `q` (..., 4) in rad."""
        poses = np.ascontiguousarray(np.moveaxis(arm.chain.poses(q), (-3, -2, -1), (0, 1, 2)))
        return cls(poses[:, :3, :3], poses[:, :3, 3])

    def place(self, frame: int, point: Floats) -> Floats:
        """A point (3,) of a link frame in ArmBase, (3, ...) m."""
        return turn(self.rotation[frame], point) + self.origin[frame]


@dataclass(frozen=True, eq=False)
class Stack:
    """What each link frame carries: the bodies on it and beyond it."""

    mass: Floats  # (6,), of the body and all beyond it, kg
    moment: Floats  # (6, 3, ...), sum of their masses times their places in ArmBase, kg m


def outer_masses(links: Links, frames: Frames, *, with_payload: bool) -> Stack:
    """Add the masses up from the tool inwards."""
    mass, moment = np.zeros(len(DISTAL) + 1), np.zeros((len(DISTAL) + 1, *frames.origin.shape[1:]))
    if with_payload and links.payload:
        mass[-1] = links.payload
        moment[-1] = links.payload * frames.place(DISTAL[-1], links.attach)
    for body, frame in reversed(list(enumerate(DISTAL))):
        mass[body], moment[body] = mass[body + 1] + links.mass[body], moment[body + 1]
        if links.mass[body]:
            moment[body] += links.mass[body] * frames.place(frame, links.centre[body])
    return Stack(mass[:-1], moment[:-1])


def turn(rotation: Floats, vector: Floats) -> Floats:
    """Vectors (3, ...) or (3,) turned by matrices (3, 3, ...)."""
    if vector.ndim == 1:
        return np.einsum("ij...,j->i...", rotation, vector)
    return np.einsum("ij...,j...->i...", rotation, vector)


def cross(a: Floats, b: Floats) -> Floats:
    """Cross products (3, ...) of vectors (3, ...) or (3,)."""
    return np.stack([a[j] * b[k] - a[k] * b[j] for j, k in ((1, 2), (2, 0), (0, 1))])
