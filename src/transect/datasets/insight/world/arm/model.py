"""An arm of four joints that bends under its weight and its load: what is true of it, by first principles.

The chain is walked matrix by matrix from the base to the wrist; each link ends in a small elastic
`give` (a displacement and a finite rotation) that its compliance matrix makes of the loads beyond it. Loads
depend on where the bent arm is, so `settle` repeats both until they agree. What a motor has to hold follows
from virtual work: how much the loads gain when its joint turns a little.

Everything is in the IDA frame (z points down), rows first: (n, 4) joint angles, (n, 3) points and forces.
The arm moves slowly, so that nothing here knows of inertia.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import rotations

Sets = Mapping[str, Mapping[str, Any]]
"""Parameter sets as ``recording.conditions["parameters"]`` has them: SI, by the names of SIS 5.1.3."""

BODIES = 5
"""The base and four links; the tool has no mass of its own in the SIS."""
STOWED = 2
"""In the grapple phases before this one the grapple is folded to the forearm (SIS Table 15)."""
PAYLOADS = {3: "seis", 4: "wts", 5: "hp3"}
"""What hangs on the grapple, by grapple phase."""
_OFFSETS = {0: "x_blade_1", 1: "x_blade_2", 2: "x_scoop", 3: "x_rac", 4: "x_wrist"}
_HUNG = {5: "dist_grapple", 6: "", 7: "dist_seis", 8: "dist_wts", 9: "dist_hp3"}
_SETTLED = 1e-10
"""m and rad to which shape and loads agree."""
_MOST = 30
_NUDGE = 1e-5
"""rad by which a joint is turned to see what its load gains; the error is its square."""


@dataclass(frozen=True, eq=False)
class Tool:
    """What is moved somewhere (SIS Table 14)."""

    code: int
    # (3,), in the wrist frame, m; of the camera with joint 4 at zero, since it sits on the forearm
    offset: Floats
    theta: float  # added to the elevation of the wrist's z axis, rad
    drop: float = 0.0  # how far it hangs below its offset, along gravity, m

    @property
    def hangs(self) -> bool:
        """Whether it is on the umbilical."""
        return self.code in (5, 7, 8, 9)

    @property
    def on_forearm(self) -> bool:
        """Whether joint 4 leaves it where it is: the camera."""
        return self.code == 3


@dataclass(frozen=True, eq=False)
class Links:
    """Masses and compliances of the base and the four links."""

    mass: Floats  # (5,), kg
    # (5, 3), centres of mass after the joint's turn, before the link's own d, a and alpha, m
    centre: Floats
    # (5, 6, 6), displacement and rotation for force and moment, at and in the far end of the link
    compliance: Floats

    @classmethod
    def of(cls, sets: Sets, phase: int) -> Links:
        """Return the links as they are in a grapple phase (SIS Table 15)."""
        state = "STOWED" if phase < STOWED else "UNSTOWED"
        names = ["0", "1", "2", f"3_{state}", f"4_{state}"]
        chosen = [sets[f"RA_DEFL_LINK_{name}"] for name in names]
        scale = float(sets["RA_DEFL_GENERAL"]["compliance_scale"])
        matrices = [np.block([[_m(v, "vCf"), _m(v, "vCm")], [_m(v, "wCf"), _m(v, "wCm")]]) for v in chosen]
        return cls(
            mass=np.array([v["mass"] for v in chosen], dtype=np.float64),
            centre=np.array([[v[f"cm_{axis}"] for axis in "xyz"] for v in chosen], dtype=np.float64),
            compliance=scale * np.array(matrices),
        )

    def softer(self, factor: Floats) -> Links:
        """Return links whose compliances are (5,) times as large: no arm is quite its model."""
        return replace(self, compliance=self.compliance * factor[:, None, None])


def _m(values: Mapping[str, Any], key: str) -> Floats:
    return np.asarray(values[key], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Frames:
    """Where the bent chain is."""

    # (5, n, 3, 3), of the base and the far ends of the links; takes their vectors to the IDA frame
    rotation: Floats
    origin: Floats  # (5, n, 3), m
    centre: Floats  # (5, n, 3), centres of mass, m

    def axis(self, joint: int) -> Floats:
        """Axis (n, 3) of joint 1 to 4: z of the body before it."""
        return self.rotation[joint - 1, :, :, 2]


@dataclass(frozen=True, eq=False)
class Arm:
    """The chain and its gravity."""

    # a, d, alpha: (4,), denavit and Hartenberg's, in the standard (distal) convention (spec, 4.1)
    a: Floats
    d: Floats
    alpha: Floats
    down: Floats  # (3,), unit vector of gravity
    gravity: float  # m/s2
    tools: Mapping[int, Tool]  # by their code

    @classmethod
    def of(cls, sets: Sets) -> Arm:
        """Return the arm of some parameter sets."""
        arm = sets["RA_ARM_PARAMS"]
        down = np.asarray(sets["RA_GRAVITY"]["gravity_params.grav_vect"], dtype=np.float64)
        return cls(
            a=_m(arm, "dh.a"),
            d=_m(arm, "dh.d"),
            alpha=_m(arm, "dh.alpha"),
            down=down / np.linalg.norm(down),
            gravity=float(sets["RA_GRAVITY"]["gravity_params.acc_g"]),
            tools={code: _tool(arm, code) for code in (*_OFFSETS, *_HUNG)},
        )

    def walk(self, q: Floats, give: Floats | None = None, links: Links | None = None) -> Frames:
        """Return the frames of the chain at joint angles (n, 4).

        Parameters
        ----------
        q : (n, 4) array
            rad.
        give : (5, n, 6) array, optional
            Elastic displacement (m) and rotation (rad) of each far end, in its own axes; none if stiff.
        links : Links, optional
            Whose centres of mass are wanted; else they are at the joints.
        """
        centres = np.zeros((BODIES, 3)) if links is None else links.centre
        turn, place = np.tile(np.eye(3), (len(q), 1, 1)), np.zeros((len(q), 3))
        turns, places, middles = list[Floats](), list[Floats](), [place + centres[0]]
        for body in range(BODIES):
            if body:
                link = body - 1
                turn = turn @ _about(2, q[:, link])
                middles.append(place + turn @ centres[body])
                place = place + turn @ np.array([self.a[link], 0.0, self.d[link]])
                turn = turn @ _about(0, self.alpha[link])
            if give is not None:
                place = place + _turn(turn, give[body, :, :3])
                turn = turn @ rotations.matrix_from_rotation_vector(give[body, :, 3:])
            turns.append(turn)
            places.append(place)
        return Frames(np.stack(turns), np.stack(places), np.stack(middles))

    def held(self, frames: Frames, tool: Tool) -> Floats:
        """Where (n, 3) a tool is held: its own place, or the attach point of one that hangs."""
        if tool.on_forearm:
            return frames.origin[3] + frames.rotation[3] @ (_about(0, self.alpha[3]) @ tool.offset)
        return frames.origin[4] + frames.rotation[4] @ tool.offset

    def place(self, frames: Frames, tool: Tool) -> Floats:
        """Where (n, 3) a tool is."""
        return self.held(frames, tool) + tool.drop * self.down

    def elevation(self, frames: Frames, q: Floats, tool: Tool) -> Floats:
        """Angle th (n,) of a tool below the xy plane, rad, in the plane of the arm (spec, 4.2 and 4.3)."""
        if tool.hangs:
            return np.full(len(q), np.arcsin(self.down[2]))
        pointing = frames.rotation[3] @ _about(0, self.alpha[3]) if tool.on_forearm else frames.rotation[4]
        axis = pointing[..., 2]
        outwards = np.cos(q[:, 0]) * axis[:, 0] + np.sin(q[:, 0]) * axis[:, 1]
        return np.arctan2(axis[:, 2], outwards) + tool.theta


def _tool(arm: Mapping[str, Any], code: int) -> Tool:
    key = _OFFSETS.get(code, "x_grapple_attach")
    offset = np.asarray(arm[key], dtype=np.float64)
    drop = float(arm[_HUNG[code]][2]) if _HUNG.get(code) else 0.0
    return Tool(code, offset[:3], float(offset[3]), drop)


def _about(axis: int, angle: Any) -> Floats:
    """Matrices (..., 3, 3) that turn by `angle` (...) about x (0) or z (2)."""
    c, s = np.cos(angle), np.sin(angle)
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.zeros((*np.shape(angle), 3, 3))
    matrix[..., axis, axis] = 1.0
    matrix[..., first, first] = matrix[..., second, second] = c
    matrix[..., second, first], matrix[..., first, second] = s, -s
    return matrix


def _turn(matrices: Floats, vectors: Floats) -> Floats:
    """Vectors (n, 3) turned by matrices (n, 3, 3)."""
    return np.einsum("nij,nj->ni", matrices, vectors)


def cross(a: Floats, b: Floats) -> Floats:
    """Cross products (n, 3) of vectors (n, 3) or (3,); numpy's own takes longer to begin than to do."""
    return np.einsum("ijk,...j,...k->...i", _LEVI_CIVITA, a, b)


_LEVI_CIVITA = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    _LEVI_CIVITA[_i, _j, _k], _LEVI_CIVITA[_i, _k, _j] = 1.0, -1.0


@dataclass(frozen=True, eq=False)
class Load:
    """A force on the arm from outside."""

    force: Floats  # (n, 3), N, which the surroundings exert on the arm
    tool: Tool  # where it is held is where the force acts


@dataclass(frozen=True, eq=False)
class Settled:
    """An arm at rest under its loads: its frames, and the elastic give (5, n, 6) that they contain."""

    frames: Frames
    give: Floats


def wrenches(arm: Arm, frames: Frames, links: Links, load: Load) -> Floats:
    """Force and moment (5, n, 6) at the far end of each body, in its axes: all weights and loads beyond."""
    weights = links.mass[:, None] * arm.gravity * arm.down
    at = arm.held(frames, load.tool)
    force, about_zero = load.force.copy(), cross(at, load.force)
    found = np.empty((BODIES, len(at), 6))
    for body in reversed(range(BODIES)):
        force = force + weights[body]
        about_zero = about_zero + cross(frames.centre[body], weights[body])
        back = frames.rotation[body].swapaxes(1, 2)
        found[body, :, :3] = _turn(back, force)
        found[body, :, 3:] = _turn(back, about_zero - cross(frames.origin[body], force))
    return found


def settle(arm: Arm, links: Links, q: Floats, load: Load, start: Settled | None = None) -> Settled:
    """Bend the arm until its give and its loads agree.

    Parameters
    ----------
    q : (n, 4) array
        Joint angles, rad.
    load : Load
        Of as many rows. It keeps its direction while the arm gives way.
    start : Settled, optional
        A shape to begin with, such as that under a similar load; else the stiff arm's.
    """
    give = np.zeros((BODIES, len(q), 6)) if start is None else start.give
    for _ in range(_MOST):
        frames = arm.walk(q, give, links)
        bent = np.einsum("bij,bnj->bni", links.compliance, wrenches(arm, frames, links, load))
        change = float(np.abs(bent - give).max(initial=0.0))
        give = bent
        if change < _SETTLED:  # each round is some 30 times as close as the one before
            break
    return Settled(arm.walk(q, give, links), give)


def holding_torques(arm: Arm, links: Links, q: Floats, settled: Settled, load: Load) -> Floats:
    """Torques (n, 4) in N m that the motors must give to hold the arm, by virtual work.

    A joint that turns a little with the bent shape frozen lets the weights and the load do work; the motor
    must do as much.
    """
    weights = links.mass[:, None, None] * arm.gravity * arm.down
    torques = np.empty(q.shape)
    for joint in range(4):
        work: list[Floats] = []
        for side in (-_NUDGE, _NUDGE):
            nudged = q + side * np.eye(4)[joint]
            frames = arm.walk(nudged, settled.give, links)
            done = (weights * frames.centre).sum(axis=(0, 2))
            work.append(done + (load.force * arm.held(frames, load.tool)).sum(axis=1))
        torques[:, joint] = -(work[1] - work[0]) / (2 * _NUDGE)
    return torques


PROBE = 5.0
"""N with which the arm's own compliance is tried."""
ROUNDS = 4
"""How often force and shape are brought to agree; each round is some 30 times as close as the one before."""


@dataclass(frozen=True)
class Soil:
    """A place in the ground."""

    name: str  # contacts of one name share their dent
    level: float  # where its surface lies along gravity, m from the IDA frame's origin
    stiffness: float  # N/m while it is pressed deeper than ever before
    rebound: float  # N/m while it is let go, or pressed again
    drag: float = 0.0  # friction of a tool that is drawn over it, part of the normal force


@dataclass(frozen=True)
class Support:
    """Deck or ground that carries a payload: a stiff spring that gives no more than its weight."""

    level: float  # where the payload's hook is along gravity while it stands there, m
    weight: float  # N
    stiffness: float = 4.0e4


Contact = Soil | Support


@dataclass
class Dents:
    """How deep each place was pressed so far, m."""

    deepest: dict[str, float] = field(default_factory=dict[str, float])

    def press(self, soil: Soil, depth: Floats, give: Floats) -> Floats:
        """Return normal forces (n,) in N of a tool that an unloaded arm would have at depths (n,).

        Parameters
        ----------
        depth : (n,) array
            m below the surface; negative above.
        give : (n,) array
            m/N by which the arm gives way.
        """
        worst = self.deepest.get(soil.name, 0.0)
        k, stiff = soil.stiffness, soil.rebound
        normal = np.zeros(len(depth))
        for row, (free, soft) in enumerate(zip(depth.tolist(), give.tolist(), strict=True)):
            force = k * free / (1.0 + k * soft)
            if soil.drag == 0.0 and free - soft * force < worst:
                force = (stiff * free - (stiff - k) * worst) / (1.0 + stiff * soft)
            normal[row] = max(force, 0.0)
            if soil.drag == 0.0 and force > 0.0:  # a blade that is drawn along meets fresh ground
                worst = max(worst, free - soft * force)
        self.deepest[soil.name] = worst
        return normal


@dataclass(frozen=True, eq=False)
class Touch:
    """The arm on what it touches."""

    settled: Settled
    force: Floats  # (n, 3), which the surroundings, and the weight of a payload, exert on the arm, N
    normal: Floats  # (n,), of it, what the ground bears, N
    depth: Floats  # (n,), of tool or payload below the surface, m; negative above


def touch(
    arm: Arm, links: Links, q: Floats, tool: Tool, contact: Contact, dents: Dents, away: Floats
) -> Touch:
    """Find force and shape of an arm that may touch something.

    Parameters
    ----------
    q : (n, 4) array
        Joint angles over time, rad.
    contact : Contact
        Soil under a rigid tool, or the support of a payload that hangs.
    dents : Dents
        Soil's memory; goes on from here.
    away : (n, 3) array
        Where friction acts: unit vectors against the tool's motion over the ground, zero where it stands.
    """
    held = contact.weight if isinstance(contact, Support) else 0.0
    drag = contact.drag if isinstance(contact, Soil) else 0.0
    push = -arm.down + drag * away
    base = np.tile(held * arm.down, (len(q), 1))

    def bent(normal: Floats, start: Settled | None = None) -> tuple[Settled, Floats]:
        at = settle(arm, links, q, Load(base + normal[:, None] * push, tool), start)
        return at, arm.place(at.frames, tool) @ arm.down - contact.level

    normal = np.zeros(len(q))
    settled, depth = bent(normal)
    give = (depth - bent(np.full(len(q), PROBE), settled)[1]) / PROBE
    start = dict(dents.deepest)
    for _ in range(ROUNDS):
        free = depth + give * normal
        if isinstance(contact, Soil):
            dents.deepest = dict(start)
            normal = dents.press(contact, free, give)
        else:
            stiff = contact.stiffness
            normal = np.clip(stiff * free / (1.0 + stiff * give), 0.0, contact.weight)
        settled, depth = bent(normal, settled)
    return Touch(settled, base + normal[:, None] * push, normal, depth)
