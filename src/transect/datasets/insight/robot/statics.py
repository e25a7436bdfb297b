"""Masses and compliances of the links: sag, gravity moments and end-effector forces.

Six bodies: the base (0), the links 1 to 4, and the tool (5), which has no mass in the SIS. Each is attached
to its distal Denavit-Hartenberg frame (the tool to that of the wrist), in which its compliance is given. The
centre of mass is printed in the frame before the link's d, a and alpha, but after the joint rotation; so it
is also a fixed point of the distal frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import TransectError, did_you_mean
from transect.geometry import se3
from transect.geometry.array_checks import floats
from transect.robots import load

from .arm import ArmTool, DeploymentArm
from .codes import GrapplePhase
from .kinematics import levers, tool_pose
from .parameters import Parameters

Missing = Literal["substitute", "raise"]
FRAME_OF_BODY = (0, 1, 2, 3, 4, 4)
"""The distal link frame of each body."""
_KEYS = ("mass", "cm_x", "cm_y", "cm_z", "vCf", "wCf", "vCm", "wCm")
_GRAPPLED_SUFFIX = "-Grappled"


@dataclass(frozen=True, eq=False)
class LinkProperties:
    """Masses and compliances of the bodies in one grapple phase."""

    mass: Floats  # (6,), kg
    centre: Floats  # (6, 3), centres of mass in the distal frames, m
    # (6, 6, 6), displacement (m) and rotation (rad) by force (N) and moment (N m) in the distal frame; scaled
    # by `compliance_scale`
    compliance: Floats
    gravity: Floats  # (3,), in ArmBase, m/s2
    payload: float  # mass on the grapple, kg
    attach: Floats  # (3,), its attach point in the wrist frame, m; NaN without payload
    substitutes: tuple[str, ...]  # parameters that no source gives, and their substitutes

    @classmethod
    def of(
        cls, arm: DeploymentArm, phase: int | str = "OK-To-Open", missing: Missing = "substitute"
    ) -> LinkProperties:
        """Return the bodies of an arm.

        The SIS omits most of RA_DEFL_LINK_0, the mass of RA_DEFL_LINK_3_STOWED and all of
        RA_DEFL_LINK_4_UNSTOWED. By reciprocity wCf is the transpose of vCm, and the printed parts of the two
        forearm matrices are equal: these substitutions are always applied, and listed in `substitutes`.

        Parameters
        ----------
        phase : int or str
            Grapple phase by its code or name in SIS Table 15: selects the stowed or unstowed sets, and the
            payload.
        missing : str
            Treatment of other missing numbers: `substitute` those of the other set of the link, and zero for
            the base, which is hundreds of times as stiff as the next link; or `raise`.

        Raises
        ------
        MissingParameterError
            If a number is missing.
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
    valid = names if isinstance(phase, str) else range(len(names))
    if phase not in valid:
        raise TransectError(f"there is no grapple phase {phase!r}", hint=did_you_mean(str(phase), names))
    return phase if isinstance(phase, str) else names[phase]


def _set_names(phase: str) -> list[tuple[str, str | None]]:
    """The parameter set of each body, and the set of its link in the other state of the grapple."""
    stowed = load("ida").constants["grapple_phases"].index(phase) < GrapplePhase.OK_TO_OPEN
    now, then = ("STOWED", "UNSTOWED") if stowed else ("UNSTOWED", "STOWED")
    link = "RA_DEFL_LINK_"
    both = [(f"{link}{i}_{now}", f"{link}{i}_{then}") for i in (3, 4)]
    return [(f"{link}0", None), (f"{link}1", None), (f"{link}2", None), *both, (f"{link}5", None)]


def _payload(parameters: Parameters, phase: str) -> float:
    if not phase.endswith(_GRAPPLED_SUFFIX):
        return 0.0
    return parameters.number("RA_DEFL_GENERAL", f"{phase.removesuffix(_GRAPPLED_SUFFIX).lower()}_mass")


def _body(
    parameters: Parameters, name: str, other: str | None, missing: Missing
) -> tuple[dict[str, Floats], list[str]]:
    """Return the numbers of a parameter set by key, and a note for each substitute."""
    found = {key: _number(parameters, name, other, key, missing) for key in _KEYS}
    notes = [
        f"{name} {', '.join(key for key, (_, who) in found.items() if who == source)}: {source}"
        for source in dict.fromkeys(who for _, who in found.values() if who)
    ]
    return {key: values for key, (values, _) in found.items()}, notes


def _number(
    parameters: Parameters, name: str, other: str | None, key: str, missing: Missing
) -> tuple[Floats, str]:
    """Return a number, and its source if that is not its own set."""
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
    return parameters.numbers(name, key), ""  # raises MissingParameterError


def _equal(parameters: Parameters, name: str, other: str, key: str) -> bool:
    there = parameters.has(name, key) and parameters.has(other, key)
    return there and np.array_equal(parameters.numbers(name, key), parameters.numbers(other, key))


def _centres(arm: DeploymentArm, printed: Floats) -> Floats:
    """Centres of mass (6, 3) in the distal frames; `steps` at zero are the constant link transforms."""
    distal = printed.copy()
    distal[1:5] = se3.apply(se3.invert(arm.chain.steps(np.zeros(4))), printed[1:5])
    return distal


def _six_by_six(values: dict[str, Floats]) -> Floats:
    return np.block([[values["vCf"], values["vCm"]], [values["wCf"], values["wCm"]]])


@dataclass(frozen=True, eq=False)
class LinkFrames:
    """The link frames, rows last: numpy is several times as fast on a long last axis."""

    rotation: Floats  # (5, 3, 3, ...), from each link frame to ArmBase
    origin: Floats  # (5, 3, ...), of each link frame in ArmBase, m

    @classmethod
    def of(cls, arm: DeploymentArm, q: ArrayLike) -> LinkFrames:
        """Return the frames at joint angles `q` (..., 4) in rad."""
        poses = np.ascontiguousarray(np.moveaxis(arm.chain.poses(q), (-3, -2, -1), (0, 1, 2)))
        return cls(poses[:, :3, :3], poses[:, :3, 3])

    def transform(self, frame: int, point: Floats) -> Floats:
        """Transform a point (3,) of a link frame to ArmBase, (3, ...) m."""
        return rotate(self.rotation[frame], point) + self.origin[frame]


@dataclass(frozen=True, eq=False)
class OuterMasses:
    """Mass and first moment of mass that each link frame carries."""

    mass: Floats  # (6,), of the body and all beyond it, kg
    moment: Floats  # (6, 3, ...), sum of masses times positions in ArmBase, kg m


def sum_outer_masses(links: LinkProperties, frames: LinkFrames, *, with_payload: bool) -> OuterMasses:
    """Sum the masses from the tool to the base."""
    mass, moment = (
        np.zeros(len(FRAME_OF_BODY) + 1),
        np.zeros((len(FRAME_OF_BODY) + 1, *frames.origin.shape[1:])),
    )
    if with_payload and links.payload:
        mass[-1] = links.payload
        moment[-1] = links.payload * frames.transform(FRAME_OF_BODY[-1], links.attach)
    for body, frame in reversed(list(enumerate(FRAME_OF_BODY))):
        mass[body], moment[body] = mass[body + 1] + links.mass[body], moment[body + 1]
        if links.mass[body]:
            moment[body] += links.mass[body] * frames.transform(frame, links.centre[body])
    return OuterMasses(mass[:-1], moment[:-1])


def rotate(rotation: Floats, vector: Floats) -> Floats:
    """Vectors (3, ...) or (3,) rotated by matrices (3, 3, ...)."""
    if vector.ndim == 1:
        return np.einsum("ij...,j->i...", rotation, vector)
    return np.einsum("ij...,j...->i...", rotation, vector)


def cross(a: Floats, b: Floats) -> Floats:
    """Cross products (3, ...) of vectors (3, ...) or (3,)."""
    return np.stack([a[j] * b[k] - a[k] * b[j] for j, k in ((1, 2), (2, 0), (0, 1))])


Move = Literal["abs", "rel", "tool", "jnt_abs", "jnt_rel"]
"""Cartesian moves: absolute, relative, in the tool frame; joint moves: absolute, relative."""


@dataclass(frozen=True, eq=False)
class Deflection:
    """Elastic deflection of a tool."""

    pose: Floats  # (..., 4), deflected pose, x, y, z (m) in the IDA frame and th (rad)
    # (..., 3), of the tool, or of the attach point of a hanging tool, in the IDA frame, m
    displacement: Floats
    rotation: (
        Floats  # (..., 3), small rotation vector of the body that carries the tool, in the IDA frame, rad
    )
    substitutes: tuple[str, ...]  # see `LinkProperties`


def deflection(
    arm: DeploymentArm, q: ArrayLike, tool: ArmTool | str | int, links: LinkProperties | None = None
) -> Deflection:
    """Deflected pose of a tool.

    Parameters
    ----------
    q : (..., 4)
        Joint angles, rad.
    links : Links, optional
        Of the grapple phase; default: grapple unstowed, no payload.
    """
    bodies = links or LinkProperties.of(arm)
    chosen = arm.tool(tool)
    pose = tool_pose(arm, q, chosen)
    attachment = np.moveaxis(pose[..., :3] - chosen.distance[2] * arm.down, -1, 0)
    frames = LinkFrames.of(arm, q)
    stack = sum_outer_masses(bodies, frames, with_payload=True)
    fixed_to = 3 if chosen.kind == "camera" else 4
    displacement, rotation = np.zeros(attachment.shape), np.zeros(attachment.shape)
    for body, frame in enumerate(FRAME_OF_BODY):
        if frame > fixed_to or not bodies.compliance[body].any():
            continue
        v, w = _deform(bodies, stack, frames, body)
        displacement += v + cross(w, attachment - frames.origin[frame])
        rotation += w
    moved = np.moveaxis(displacement, 0, -1)
    pose[..., :3] += moved
    if chosen.kind != "hanging":
        axis = frames.rotation[1, :, 2]  # of joints 2 to 4 and of th
        pose[..., 3] += np.einsum("i...,i...->...", rotation, axis)
    return Deflection(pose, moved, np.moveaxis(rotation, 0, -1), bodies.substitutes)


def _deform(
    links: LinkProperties, stack: OuterMasses, frames: LinkFrames, body: int
) -> tuple[Floats, Floats]:
    """Displacement and rotation (3, ...) of a body's frame by its own compliance, in ArmBase."""
    frame, mass = FRAME_OF_BODY[body], stack.mass[body]
    R, inverse = frames.rotation[frame], frames.rotation[frame].swapaxes(0, 1)
    lever = stack.moment[body] - mass * frames.origin[frame]
    load = [rotate(inverse, mass * links.gravity), rotate(inverse, cross(lever, links.gravity))]
    deformation = np.einsum("ij,j...->i...", links.compliance[body], np.concatenate(load))
    return rotate(R, deformation[:3]), rotate(R, deformation[3:])


def target_pose(
    arm: DeploymentArm,
    q: ArrayLike,
    tool: ArmTool | str | int,
    links: LinkProperties | None = None,
    move: Move = "abs",
) -> Floats:
    """Pose (..., 4) of target angles `q` (..., 4) in the flight software.

    It is the deflected pose if RA_DEFL_GENERAL enables the compensation for that kind of move, else that of
    the rigid arm. According to the SIS only `abs` is implemented; the others are used if they are enabled.
    """
    if arm.parameters.number("RA_DEFL_GENERAL", f"defl_params.enable_{move}"):
        return deflection(arm, q, tool, links).pose
    return tool_pose(arm, q, tool)


Sign = Literal["sis", "geometric"]
INVALID_FORCE = -99999.0
"""Value of undetermined forces in the archive; NaN inside transect."""
_MIN_RELATIVE_DETERMINANT = 1e-12
"""Smallest determinant of the normal equations relative to their squared trace."""


@dataclass(frozen=True, eq=False)
class Forces:
    """Forces that a tool exerts."""

    values: Floats  # (..., 3), F_R, F_T, F_Z in the order of Table 12, N
    # false for a tool that is not rigid on the wrist: the forces act at the attach point of a hanging tool,
    # or on the forearm with the camera, whose position does not depend on joint 4
    at_tool: bool


def gravity_moments(
    arm: DeploymentArm, q: ArrayLike, links: LinkProperties | None = None, *, with_payload: bool = False
) -> Floats:
    """Moments of the link weights about the axes of the joints.

    Parameters
    ----------
    q : (..., 4)
        Joint angles, rad.
    links : Links, optional
        Of the grapple phase; default: grapple unstowed, no payload.
    with_payload : bool
        Whether the payload counts as a weight of the arm instead of a force of the tool; the SIS is
        ambiguous.

    Returns
    -------
    (..., 4)
        N m, positive in the direction of increasing joint angle.
    """
    bodies = links or LinkProperties.of(arm)
    frames = LinkFrames.of(arm, q)
    stack = sum_outer_masses(bodies, frames, with_payload=with_payload)
    axial = [
        np.einsum(
            "i...,i...->...",
            frames.rotation[joint, :, 2],
            cross(stack.moment[joint + 1] - stack.mass[joint + 1] * frames.origin[joint], bodies.gravity),
        )
        for joint in range(4)
    ]
    return np.stack(axial, axis=-1)


def moments(
    arm: DeploymentArm,
    q: ArrayLike,
    tau: ArrayLike,
    links: LinkProperties | None = None,
    *,
    with_payload: bool = False,
) -> Floats:
    """Joint moments including gravity, (..., 4) N m: ``m_i = tau_i + moment_iz``.

    `tau` (..., 4) are the motor torques in N m, the other parameters those of `gravity_moments`. The printed
    numbers of the SIS do not determine whether both signs are equal.
    """
    return floats("torques", tau, (..., 4)) + gravity_moments(arm, q, links, with_payload=with_payload)


def end_effector_forces(
    arm: DeploymentArm,
    q: ArrayLike,
    moment: ArrayLike,
    tool: ArmTool | str | int,
    power: ArrayLike = (1.0, 1.0, 1.0, 1.0),
    *,
    sign: Sign = "sis",
    invalid: float = np.nan,
) -> Forces:
    """Forces of the tool on its environment.

    Parameters
    ----------
    q : (..., 4)
        Joint angles from the encoders, rad.
    moment : (..., 4)
        From `moments`, N m.
    power : (..., 4)
        1 for a joint whose motor has power, else 0: bits 0 to 3 of `stat`.
    sign : str
        Of the term of F_R in F_T: as printed (`sis`), or by statics (`geometric`).
    invalid : float
        Value where fewer than two of joints 2 to 4 have power or their levers are parallel; `INVALID_FORCE`
        for the archive.
    """
    chosen, m = arm.tool(tool), floats("moments", moment, (..., 4))
    out, down = levers(arm, q, chosen)
    weight = np.broadcast_to(floats("motor power", power, (..., 4)), m.shape)[..., 1:]
    if chosen.kind == "camera":
        weight = weight * [1.0, 1.0, 0.0]
    radial, vertical = _least_squares(out, down, m[..., 1:], weight)
    radius = arm.chain.a[0] + out[..., 0]
    lateral = float(arm.chain.d[1] + chosen.offset[1]) * (1.0 if sign == "sis" else -1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        transverse = (m[..., 0] + radial * lateral) / radius
    values = np.stack([radial, transverse, vertical], axis=-1)
    valid = np.isfinite(values).all(axis=-1, keepdims=True)
    return Forces(np.where(valid, values, invalid), chosen.kind == "rigid")


def _least_squares(C: Floats, S: Floats, m: Floats, p: Floats) -> tuple[Floats, Floats]:
    """F_R and F_Z (...) of ``m_i = C_i F_Z - S_i F_R``, weighted by `p`; NaN where not determined."""
    pS, pC = p * S, p * C
    a00, a01, a11 = _dot(pS, S), -_dot(pS, C), _dot(pC, C)
    b0, b1 = -_dot(pS, m), _dot(pC, m)
    determinant = a00 * a11 - a01 * a01
    determined = (np.abs(p.sum(axis=-1)) >= 2.0) & (
        determinant > _MIN_RELATIVE_DETERMINANT * (a00 + a11) ** 2
    )
    determinant = np.where(determined, determinant, np.nan)
    return (a11 * b0 - a01 * b1) / determinant, (a00 * b1 - a01 * b0) / determinant


def _dot(a: Floats, b: Floats) -> Floats:
    return np.einsum("...i,...i->...", a, b)
