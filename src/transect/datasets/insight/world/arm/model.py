"""An elastic arm of four joints that bends under its weight and its load: ground truth of the simulation.

The frames are multiplied from the base to the wrist; each link ends in a small elastic deformation (a
displacement and a finite rotation), the product of its compliance matrix and the loads beyond it. The loads
depend on the shape of the bent arm, so `find_equilibrium` iterates both to convergence. The torques of the
motors follow from virtual work: the change of potential energy when a joint turns a little.

Everything is in the IDA frame (z points down), rows first: (n, 4) joint angles, (n, 3) points and forces.
The arm moves slowly; inertia is neglected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.datasets.insight.robot.codes import HANGING_TOOLS, GrapplePhase, ToolCode
from transect.geometry import rotations

Sets = Mapping[str, Mapping[str, Any]]
"""Parameter sets as ``recording.conditions["parameters"]`` has them: SI, by the names of SIS 5.1.3."""

BODY_COUNT = 5
"""The base and four links; the tool has no mass in the SIS."""
PAYLOADS: dict[int, str] = {
    GrapplePhase.SEIS_GRAPPLED: "seis",
    GrapplePhase.WTS_GRAPPLED: "wts",
    GrapplePhase.HP3_GRAPPLED: "hp3",
}
"""Payload that hangs on the grapple, by grapple phase."""
_OFFSETS: dict[int, str] = {
    ToolCode.BLADE_1: "x_blade_1",
    ToolCode.BLADE_2: "x_blade_2",
    ToolCode.SCOOP: "x_scoop",
    ToolCode.CAMERA: "x_rac",
    ToolCode.WRIST: "x_wrist",
}
_HANG_LENGTHS: dict[int, str] = {
    ToolCode.GRAPPLE: "dist_grapple",
    ToolCode.GRAPPLE_ATTACH: "",
    ToolCode.SEIS: "dist_seis",
    ToolCode.WTS: "dist_wts",
    ToolCode.HP3: "dist_hp3",
}


@dataclass(frozen=True)
class EquilibriumSettings:
    """Numerical settings of `find_equilibrium`, `holding_torques` and `solve_contact`."""

    tolerance: float = 1e-10  # m and rad, change of the deformation per iteration
    max_iterations: int = 30  # each reduces the error about 30 times
    # rotation of a joint in the central difference of the potential energy; the error is its square
    torque_step_rad: float = 1e-5
    probe_force_n: float = 5.0  # that measures the compliance of the arm at the contact
    contact_iterations: int = 4  # of force and shape, each reduces the error about 30 times


EQUILIBRIUM = EquilibriumSettings()


@dataclass(frozen=True, eq=False)
class ToolGeometry:
    """Geometry of a tool (SIS Table 14)."""

    code: int
    # (3,), in the wrist frame, m; of the camera, which is mounted on the forearm, with joint 4 at zero
    offset: Floats
    theta: float  # added to the elevation of the wrist's z axis, rad
    hang_length: float = 0.0  # distance below its attachment, along gravity, m

    @property
    def hangs(self) -> bool:
        """Whether it hangs on the umbilical."""
        return self.code in HANGING_TOOLS

    @property
    def on_forearm(self) -> bool:
        """Whether joint 4 does not move it: the camera."""
        return self.code == ToolCode.CAMERA


@dataclass(frozen=True, eq=False)
class ElasticLinks:
    """Masses and compliances of the base and the four links."""

    mass: Floats  # (5,), kg
    # (5, 3), centres of mass in the frame after the joint rotation, before the link's d, a and alpha, m
    centre: Floats
    # (5, 6, 6), displacement and rotation by force and moment, at the distal end of the link, in its axes
    compliance: Floats

    @classmethod
    def of(cls, sets: Sets, phase: int) -> ElasticLinks:
        """Return the links in a grapple phase (SIS Table 15)."""
        state = "STOWED" if phase < GrapplePhase.OK_TO_OPEN else "UNSTOWED"
        names = ["0", "1", "2", f"3_{state}", f"4_{state}"]
        chosen = [sets[f"RA_DEFL_LINK_{name}"] for name in names]
        scale = float(sets["RA_DEFL_GENERAL"]["compliance_scale"])
        matrices = [np.block([[_m(v, "vCf"), _m(v, "vCm")], [_m(v, "wCf"), _m(v, "wCm")]]) for v in chosen]
        return cls(
            mass=np.array([v["mass"] for v in chosen], dtype=np.float64),
            centre=np.array([[v[f"cm_{axis}"] for axis in "xyz"] for v in chosen], dtype=np.float64),
            compliance=scale * np.array(matrices),
        )

    def scale_compliance(self, factor: Floats) -> ElasticLinks:
        """Return links with compliances multiplied by (5,) factors: the model errors of the real arm."""
        return replace(self, compliance=self.compliance * factor[:, None, None])


def _m(values: Mapping[str, Any], key: str) -> Floats:
    return np.asarray(values[key], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class BentFrames:
    """Frames of the bent chain."""

    # (5, n, 3, 3), from the frames of the base and the distal ends of the links to the IDA frame
    rotation: Floats
    origin: Floats  # (5, n, 3), m
    centre: Floats  # (5, n, 3), centres of mass, m

    def axis(self, joint: int) -> Floats:
        """Axis (n, 3) of joint 1 to 4: z of the preceding body."""
        return self.rotation[joint - 1, :, :, 2]


@dataclass(frozen=True, eq=False)
class ElasticArm:
    """Kinematic chain and gravity."""

    # a, d, alpha: (4,), Denavit-Hartenberg parameters in the standard (distal) convention
    a: Floats
    d: Floats
    alpha: Floats
    down: Floats  # (3,), unit vector of gravity
    gravity: float  # m/s2
    tools: Mapping[int, ToolGeometry]  # by code

    @classmethod
    def of(cls, sets: Sets) -> ElasticArm:
        """Return the arm of some parameter sets."""
        arm = sets["RA_ARM_PARAMS"]
        down = np.asarray(sets["RA_GRAVITY"]["gravity_params.grav_vect"], dtype=np.float64)
        return cls(
            a=_m(arm, "dh.a"),
            d=_m(arm, "dh.d"),
            alpha=_m(arm, "dh.alpha"),
            down=down / np.linalg.norm(down),
            gravity=float(sets["RA_GRAVITY"]["gravity_params.acc_g"]),
            tools={code: _tool(arm, code) for code in (*_OFFSETS, *_HANG_LENGTHS)},
        )

    def forward_frames(
        self, q: Floats, deformation: Floats | None = None, links: ElasticLinks | None = None
    ) -> BentFrames:
        """Return the frames of the chain at joint angles (n, 4).

        Parameters
        ----------
        q : (n, 4) array
            rad.
        deformation : (5, n, 6) array, optional
            Elastic displacement (m) and rotation (rad) of each distal end, in its own axes; default: rigid.
        links : ElasticLinks, optional
            Provide the centres of mass; default: at the joints.
        """
        centres = np.zeros((BODY_COUNT, 3)) if links is None else links.centre
        rotation, origin = np.tile(np.eye(3), (len(q), 1, 1)), np.zeros((len(q), 3))
        matrices, origins, masses = list[Floats](), list[Floats](), [origin + centres[0]]
        for body in range(BODY_COUNT):
            if body:
                link = body - 1
                rotation = rotation @ _rotation_about(2, q[:, link])
                masses.append(origin + rotation @ centres[body])
                origin = origin + rotation @ np.array([self.a[link], 0.0, self.d[link]])
                rotation = rotation @ _rotation_about(0, self.alpha[link])
            if deformation is not None:
                origin = origin + _rotate(rotation, deformation[body, :, :3])
                rotation = rotation @ rotations.matrix_from_rotation_vector(deformation[body, :, 3:])
            matrices.append(rotation)
            origins.append(origin)
        return BentFrames(np.stack(matrices), np.stack(origins), np.stack(masses))

    def attachment(self, frames: BentFrames, tool: ToolGeometry) -> Floats:
        """Position (n, 3) at which a tool is attached: its own, or the attach point of a hanging tool."""
        if tool.on_forearm:
            return frames.origin[3] + frames.rotation[3] @ (_rotation_about(0, self.alpha[3]) @ tool.offset)
        return frames.origin[4] + frames.rotation[4] @ tool.offset

    def tool_position(self, frames: BentFrames, tool: ToolGeometry) -> Floats:
        """Position (n, 3) of a tool."""
        return self.attachment(frames, tool) + tool.hang_length * self.down

    def elevation(self, frames: BentFrames, q: Floats, tool: ToolGeometry) -> Floats:
        """Angle th (n,) of a tool below the xy plane, rad, in the plane of the arm."""
        if tool.hangs:
            return np.full(len(q), np.arcsin(self.down[2]))
        orientation = (
            frames.rotation[3] @ _rotation_about(0, self.alpha[3]) if tool.on_forearm else frames.rotation[4]
        )
        axis = orientation[..., 2]
        outwards = np.cos(q[:, 0]) * axis[:, 0] + np.sin(q[:, 0]) * axis[:, 1]
        return np.arctan2(axis[:, 2], outwards) + tool.theta


def _tool(arm: Mapping[str, Any], code: int) -> ToolGeometry:
    key = _OFFSETS.get(code, "x_grapple_attach")
    offset = np.asarray(arm[key], dtype=np.float64)
    hang_length = float(arm[_HANG_LENGTHS[code]][2]) if _HANG_LENGTHS.get(code) else 0.0
    return ToolGeometry(code, offset[:3], float(offset[3]), hang_length)


def _rotation_about(axis: int, angle: Any) -> Floats:
    """Rotation matrices (..., 3, 3) by `angle` (...) about x (0) or z (2)."""
    c, s = np.cos(angle), np.sin(angle)
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.zeros((*np.shape(angle), 3, 3))
    matrix[..., axis, axis] = 1.0
    matrix[..., first, first] = matrix[..., second, second] = c
    matrix[..., second, first], matrix[..., first, second] = s, -s
    return matrix


def _rotate(matrices: Floats, vectors: Floats) -> Floats:
    """Vectors (n, 3) rotated by matrices (n, 3, 3)."""
    return np.einsum("nij,nj->ni", matrices, vectors)


def cross(a: Floats, b: Floats) -> Floats:
    """Cross products (n, 3) of vectors (n, 3) or (3,); np.cross has a large overhead per call."""
    return np.einsum("ijk,...j,...k->...i", _LEVI_CIVITA, a, b)


_LEVI_CIVITA = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    _LEVI_CIVITA[_i, _j, _k], _LEVI_CIVITA[_i, _k, _j] = 1.0, -1.0


@dataclass(frozen=True, eq=False)
class ExternalLoad:
    """An external force on the arm."""

    force: Floats  # (n, 3), of the environment on the arm, N
    tool: ToolGeometry  # the force acts at its attachment


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """An arm at rest under its loads: its frames, and the deformation (5, n, 6) of the links."""

    frames: BentFrames
    deformation: Floats


def wrenches(arm: ElasticArm, frames: BentFrames, links: ElasticLinks, load: ExternalLoad) -> Floats:
    """Force and moment (5, n, 6) at the distal end of each body, in its axes, by the loads beyond."""
    weights = links.mass[:, None] * arm.gravity * arm.down
    point = arm.attachment(frames, load.tool)
    force, moment = load.force.copy(), cross(point, load.force)  # about the origin
    found = np.empty((BODY_COUNT, len(point), 6))
    for body in reversed(range(BODY_COUNT)):
        force = force + weights[body]
        moment = moment + cross(frames.centre[body], weights[body])
        inverse = frames.rotation[body].swapaxes(1, 2)
        found[body, :, :3] = _rotate(inverse, force)
        found[body, :, 3:] = _rotate(inverse, moment - cross(frames.origin[body], force))
    return found


def find_equilibrium(
    arm: ElasticArm, links: ElasticLinks, q: Floats, load: ExternalLoad, start: Equilibrium | None = None
) -> Equilibrium:
    """Iterate deformation and loads of the arm to convergence.

    Parameters
    ----------
    q : (n, 4) array
        Joint angles, rad.
    load : Load
        Of as many rows; its direction is constant in the IDA frame.
    start : Settled, optional
        Initial shape, such as that under a similar load; default: the rigid arm.
    """
    deformation = np.zeros((BODY_COUNT, len(q), 6)) if start is None else start.deformation
    for _ in range(EQUILIBRIUM.max_iterations):
        frames = arm.forward_frames(q, deformation, links)
        bent = np.einsum("bij,bnj->bni", links.compliance, wrenches(arm, frames, links, load))
        change = float(np.abs(bent - deformation).max(initial=0.0))
        deformation = bent
        if change < EQUILIBRIUM.tolerance:
            break
    return Equilibrium(arm.forward_frames(q, deformation, links), deformation)


def holding_torques(
    arm: ElasticArm, links: ElasticLinks, q: Floats, equilibrium: Equilibrium, load: ExternalLoad
) -> Floats:
    """Torques (n, 4) in N m with which the motors hold the arm, by virtual work.

    The torque of a joint is the negative derivative of the work of weights and load with respect to its
    angle, at constant deformation.
    """
    weights = links.mass[:, None, None] * arm.gravity * arm.down
    torques, step = np.empty(q.shape), EQUILIBRIUM.torque_step_rad
    for joint in range(4):
        work: list[Floats] = []
        for side in (-step, step):
            frames = arm.forward_frames(q + side * np.eye(4)[joint], equilibrium.deformation, links)
            potential = (weights * frames.centre).sum(axis=(0, 2))
            work.append(potential + (load.force * arm.attachment(frames, load.tool)).sum(axis=1))
        torques[:, joint] = -(work[1] - work[0]) / (2 * step)
    return torques


@dataclass(frozen=True)
class SoilPatch:
    """The ground at one spot: a spring that is stiffer below the deepest indentation so far."""

    name: str  # contacts of one name share their indentation
    level: float  # of its surface along gravity, m from the origin of the IDA frame
    stiffness: float  # N/m while it is indented deeper than before
    rebound: float  # N/m during unloading and reloading
    drag: float = 0.0  # friction coefficient of a tool that is drawn over it


@dataclass(frozen=True)
class PayloadSupport:
    """Deck or ground under a payload: a stiff spring with at most the force of its weight."""

    level: float  # of the hook along gravity while the payload stands there, m
    weight: float  # N
    stiffness: float = 4.0e4  # N/m


Contact = SoilPatch | PayloadSupport


@dataclass
class PressedDepths:
    """Deepest indentation of each spot so far, m."""

    deepest: dict[str, float] = field(default_factory=dict[str, float])

    def press(self, soil: SoilPatch, depth: Floats, compliance: Floats) -> Floats:
        """Return normal forces (n,) in N of an elastic arm whose unloaded tool would be at depths (n,).

        Parameters
        ----------
        depth : (n,) array
            m below the surface; negative above.
        compliance : (n,) array
            Of the arm along gravity, m/N.
        """
        worst = self.deepest.get(soil.name, 0.0)
        k, stiff = soil.stiffness, soil.rebound
        normal = np.zeros(len(depth))
        for row, (free, soft) in enumerate(zip(depth.tolist(), compliance.tolist(), strict=True)):
            force = k * free / (1.0 + k * soft)
            if soil.drag == 0.0 and free - soft * force < worst:
                force = (stiff * free - (stiff - k) * worst) / (1.0 + stiff * soft)
            normal[row] = max(force, 0.0)
            if soil.drag == 0.0 and force > 0.0:  # a blade that is drawn along reaches undisturbed ground
                worst = max(worst, free - soft * force)
        self.deepest[soil.name] = worst
        return normal


@dataclass(frozen=True, eq=False)
class ContactSolution:
    """Equilibrium of an arm in contact."""

    equilibrium: Equilibrium
    force: Floats  # (n, 3), of the environment and the weight of a payload on the arm, N
    normal: Floats  # (n,), component that the ground carries, N
    depth: Floats  # (n,), of tool or payload below the surface, m; negative above


def solve_contact(
    arm: ElasticArm,
    links: ElasticLinks,
    q: Floats,
    tool: ToolGeometry,
    contact: Contact,
    pressed: PressedDepths,
    friction_direction: Floats,
) -> ContactSolution:
    """Find force and shape of an arm that may be in contact.

    Parameters
    ----------
    q : (n, 4) array
        Joint angles over time, rad.
    contact : Contact
        Soil under a rigid tool, or the support of a payload that hangs.
    dents : Dents
        Soil's memory; goes on from here.
    friction_direction : (n, 3) array
        Unit vectors against the motion of the tool over the ground, zero where it does not move.
    """
    weight = contact.weight if isinstance(contact, PayloadSupport) else 0.0
    drag = contact.drag if isinstance(contact, SoilPatch) else 0.0
    push = -arm.down + drag * friction_direction
    base = np.tile(weight * arm.down, (len(q), 1))

    def bent(normal: Floats, start: Equilibrium | None = None) -> tuple[Equilibrium, Floats]:
        at = find_equilibrium(arm, links, q, ExternalLoad(base + normal[:, None] * push, tool), start)
        return at, arm.tool_position(at.frames, tool) @ arm.down - contact.level

    normal = np.zeros(len(q))
    equilibrium, depth = bent(normal)
    probe = EQUILIBRIUM.probe_force_n
    compliance = (depth - bent(np.full(len(q), probe), equilibrium)[1]) / probe
    start = dict(pressed.deepest)
    for _ in range(EQUILIBRIUM.contact_iterations):
        free = depth + compliance * normal
        if isinstance(contact, SoilPatch):
            pressed.deepest = dict(start)
            normal = pressed.press(contact, free, compliance)
        else:
            stiff = contact.stiffness
            normal = np.clip(stiff * free / (1.0 + stiff * compliance), 0.0, contact.weight)
        equilibrium, depth = bent(normal, equilibrium)
    return ContactSolution(equilibrium, base + normal[:, None] * push, normal, depth)
