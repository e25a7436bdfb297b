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

from transect.base.arrays import Floats, Mask
from transect.errors import TransectError, did_you_mean
from transect.geometry import se3
from transect.geometry.array_checks import floats
from transect.robots import load

from .arm import Arm, Tool
from .kinematics import jacobian, levers, tool_pose
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


Move = Literal["abs", "rel", "tool", "jnt_abs", "jnt_rel"]
"""Cartesian moves: absolute, relative, in the tool's frame; joint moves: absolute, relative."""


@dataclass(frozen=True, eq=False)
class Deflection:
    """Where a tool really is."""

    pose: Floats  # (..., 4), deflected pose, x, y, z (m) in the IDA frame and th (rad)
    # (..., 3), of the tool, or of the attach point of one that hangs, in the IDA frame, m
    displacement: Floats
    rotation: Floats  # (..., 3), small rotation vector of what the tool is fixed to, in the IDA frame, rad
    substitutes: tuple[str, ...]  # numbers of the model that no source gives, and what was taken for them


def deflection(arm: Arm, q: ArrayLike, tool: Tool | str | int, links: Links | None = None) -> Deflection:
    """Deflected pose of a tool.

    Parameters
    ----------
    q : (..., 4)
        Joint angles, rad.
    links : Links, optional
        Of the grapple phase; without it `Links.of(arm)`: grapple unstowed, nothing grappled.
    """
    bodies = links or Links.of(arm)
    chosen = arm.tool(tool)
    pose = tool_pose(arm, q, chosen)
    held = np.moveaxis(pose[..., :3] - chosen.distance[2] * arm.down, -1, 0)
    frames = Frames.of(arm, q)
    stack = outer_masses(bodies, frames, with_payload=True)
    fixed_to = 3 if chosen.kind == "camera" else 4
    displacement, rotation = np.zeros(held.shape), np.zeros(held.shape)
    for body, frame in enumerate(DISTAL):
        if frame > fixed_to or not bodies.compliance[body].any():
            continue
        v, w = _give(bodies, stack, frames, body)
        displacement += v + cross(w, held - frames.origin[frame])
        rotation += w
    moved = np.moveaxis(displacement, 0, -1)
    pose[..., :3] += moved
    if chosen.kind != "hanging":
        axis = frames.rotation[1, :, 2]  # joints 2 to 4 turn about it, and so does th
        pose[..., 3] += np.einsum("i...,i...->...", rotation, axis)
    return Deflection(pose, moved, np.moveaxis(rotation, 0, -1), bodies.substitutes)


def _give(links: Links, stack: Stack, frames: Frames, body: int) -> tuple[Floats, Floats]:
    """Displacement and rotation (3, ...) of a body's frame by its own compliance, in ArmBase."""
    frame, mass = DISTAL[body], stack.mass[body]
    R, back = frames.rotation[frame], frames.rotation[frame].swapaxes(0, 1)
    lever = stack.moment[body] - mass * frames.origin[frame]
    load = [turn(back, mass * links.gravity), turn(back, cross(lever, links.gravity))]
    given = np.einsum("ij,j...->i...", links.compliance[body], np.concatenate(load))
    return turn(R, given[:3]), turn(R, given[3:])


def target_pose(
    arm: Arm, q: ArrayLike, tool: Tool | str | int, links: Links | None = None, move: Move = "abs"
) -> Floats:
    """Pose (..., 4) that the flight software means by target angles `q` (..., 4).

    It is the deflected one if RA_DEFL_GENERAL enables the compensation for that kind of move, else the stiff
    arm's. Of the five the SIS says that only `abs` is implemented; the others count if they are enabled.
    """
    if arm.parameters.number("RA_DEFL_GENERAL", f"defl_params.enable_{move}"):
        return deflection(arm, q, tool, links).pose
    return tool_pose(arm, q, tool)


def joint_deltas(arm: Arm, q: ArrayLike, tool: Tool | str | int, deflected: Deflection) -> Floats:
    """Angles (..., 4) in rad by which a stiff arm at `q` (..., 4) must turn to have its tool where it sags.

    To first order; the least turn where the pose leaves one joint free (camera, hanging tools), and the
    nearest pose where it cannot be had.
    """
    change = deflected.pose - tool_pose(arm, q, tool)
    return (np.linalg.pinv(jacobian(arm, q, tool), rcond=1e-6) @ change[..., None])[..., 0]


def exceeds_limit(arm: Arm, deltas: ArrayLike) -> Mask:
    """Where the root sum square of `joint_deltas` (..., 4) is above `deflection_limit` of RA_FAULT_DETECT."""
    size = np.linalg.norm(floats("joint deltas", deltas, (..., 4)), axis=-1)
    return np.asarray(size > arm.parameters.number("RA_FAULT_DETECT", "deflection_limit"))


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
