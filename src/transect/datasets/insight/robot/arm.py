"""The arm and its tools, as a parameter file or the SIS describes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats
from transect.errors import GeometryError, TransectError, did_you_mean
from transect.geometry import rotations, se3
from transect.geometry.array_checks import floats, norms
from transect.recording import FrameTree, Stream
from transect.robots import load
from transect.robots.chains import Chain

from .parameters import FITTED, Parameters

Kind = Literal["rigid", "camera", "hanging"]

TOOLS = ("Blade 1", "Blade 2", "Scoop", "IDC", "Wrist", "Grapple", "Grapple-Attach", "SEIS", "WTS", "HP3")
"""Names of the tools by their code (SIS Table 14)."""
_OFFSETS = {
    "Blade 1": "x_blade_1",
    "Blade 2": "x_blade_2",
    "Scoop": "x_scoop",
    "IDC": "x_rac",
    "Wrist": "x_wrist",
    "Grapple-Attach": "x_grapple_attach",
}
_HANGING = ("Grapple", "SEIS", "WTS", "HP3")
_PAYLOADS = ("SEIS", "WTS", "HP3")
_OTHER_NAMES = {"rac": "idc"}

_TWISTS = np.array([np.pi / 2, 0.0, 0.0, np.pi / 2])
_TWIST_TOLERANCE = 1e-4
"""Flight prints 1.570799947, which is 1.5708 in single precision and means a right angle."""


@dataclass(frozen=True, eq=False)
class Tool:
    """One of the tools of SIS Table 14."""

    name: str
    code: int  # its number in Table 14
    # `rigid`: fixed to the wrist; `camera`: fixed to the forearm, so joint 4 does not move it; `hanging`:
    # on the umbilical of the grapple, below the point `offset` along gravity
    kind: Kind
    offset: Floats  # (4,), x, y, z (m) and theta (rad) in the wrist frame; of a camera with joint 4 at zero
    # (3,), of a hanging tool: how far below its attach point it is, in the third element, m
    distance: Floats
    mass: float | None = None  # of a payload that it carries, kg
    origins: tuple[str, ...] = ()  # who gives these numbers

    @property
    def invented(self) -> bool:
        """Whether some of its numbers are fitted, not stated by the SIS or a parameter file."""
        return FITTED in self.origins


@dataclass(frozen=True, eq=False)
class Arm:
    """The arm of a set of parameters."""

    parameters: Parameters
    chain: Chain  # four joints in standard Denavit and Hartenberg's parameters, with their limits

    @classmethod
    def of(cls, parameters: Parameters, *, fitted: bool = False) -> Arm:
        """Return the arm that a parameter file describes.

        Parameters
        ----------
        fitted : bool
            Whether `Parameters.with_fitted` may fill in the grapple's place, which the SIS lost.
        """
        known = parameters.with_fitted() if fitted else parameters
        alpha = known.numbers("RA_ARM_PARAMS", "dh.alpha")
        if np.abs(alpha - _TWISTS).max() > _TWIST_TOLERANCE:
            raise GeometryError(
                f"dh.alpha is {alpha.tolist()}",
                where=known.origin("RA_ARM_PARAMS", "dh.alpha"),
                why="the arm is one yaw joint and three parallel pitch joints: pi/2, 0, 0, pi/2",
                hint="use transect.robots.chains.Chain for an arm of another shape",
            )
        chain = Chain(
            a=known.numbers("RA_ARM_PARAMS", "dh.a"),
            alpha=_TWISTS,
            d=known.numbers("RA_ARM_PARAMS", "dh.d"),
            lower=known.numbers("RA_JOINT_PARAMS", "q_min"),
            upper=known.numbers("RA_JOINT_PARAMS", "q_max"),
        )
        return cls(known, chain)

    @cached_property
    def mount(self) -> Floats:
        """``T_Payload_ArmBase`` (4, 4); `frame.q` of RA_LANDER_TO_RA has its scalar first."""
        x = self.parameters.numbers("RA_LANDER_TO_RA", "frame.x")
        q = self.parameters.numbers("RA_LANDER_TO_RA", "frame.q")
        return se3.from_quaternion(rotations.normalise(np.roll(q, -1)), x)

    @cached_property
    def down(self) -> Floats:
        """Direction of gravity (3,) in ArmBase, of length 1; the SIS gives it in Payload."""
        vector = self.mount[:3, :3].T @ self.parameters.numbers("RA_GRAVITY", "gravity_params.grav_vect")
        length = float(np.linalg.norm(vector))
        if not length > 0.0:
            where = self.parameters.origin("RA_GRAVITY", "gravity_params.grav_vect")
            raise GeometryError("gravity_params.grav_vect has no direction", where=where)
        return vector / length

    def tool(self, name: Tool | str | int) -> Tool:
        """Return a tool by its name (`Grapple`, also `RA_GRAPPLE`) or its code of Table 14.

        Raises
        ------
        MissingParameterError
            If neither the parameter file nor the SIS says where it is; the SIS lost scoop and grapple.
        """
        if isinstance(name, Tool):
            return name
        label = _label(name)
        origins, values = zip(*(self._of_tool(key) for key in _keys(label)), strict=True)
        hangs = label in _HANGING
        return Tool(
            name=label,
            code=TOOLS.index(label),
            kind="camera" if label == "IDC" else "hanging" if hangs else "rigid",
            offset=values[0],
            distance=values[1][:3] if hangs else np.zeros(3),
            mass=self._payload_mass(label),
            origins=tuple(dict.fromkeys(origins)),
        )

    def knows(self, name: str | int) -> bool:
        """Tell whether the parameters say where a tool is."""
        return all(
            key == "x_wrist" or self.parameters.has("RA_ARM_PARAMS", key) for key in _keys(_label(name))
        )

    def _of_tool(self, key: str) -> tuple[str, Floats]:
        if key == "x_wrist" and not self.parameters.has("RA_ARM_PARAMS", key):
            return "its definition", np.zeros(4)  # the wrist in the wrist frame
        who = self.parameters.origin("RA_ARM_PARAMS", key)
        return who, self.parameters.numbers("RA_ARM_PARAMS", key)

    def _payload_mass(self, label: str) -> float | None:
        key = f"{label.lower()}_mass"
        if label not in _PAYLOADS or not self.parameters.has("RA_DEFL_GENERAL", key):
            return None
        return self.parameters.number("RA_DEFL_GENERAL", key)


def _keys(label: str) -> tuple[str, ...]:
    """Return the parameters of RA_ARM_PARAMS that place a tool."""
    if label in _HANGING:
        return "x_grapple_attach", f"dist_{label.lower()}"
    return (_OFFSETS[label],)


def _label(name: str | int) -> str:
    """Return the name in Table 14 of a tool's code or any spelling of its name."""
    if not isinstance(name, str):
        if 0 <= name < len(TOOLS):
            return TOOLS[name]
        raise TransectError(
            f"there is no tool {name}", hint=f"codes are 0 to {len(TOOLS) - 1} (SIS Table 14)"
        )
    bare = _bare(re.sub(r"^ra_", "", name, flags=re.IGNORECASE))
    bare = _OTHER_NAMES.get(bare, bare)
    for label in TOOLS:
        if _bare(label) == bare:
            return label
    raise TransectError(f"there is no tool {name!r}", hint=did_you_mean(name, TOOLS))


def _bare(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


LINKS = ("ArmBase", "Shoulder", "UpperArm", "Forearm", "Wrist")
"""Names of the Denavit-Hartenberg frames 0 to 4; frame i moves with joint i."""
TABLE_7 = {
    "Payload Frame (P Frame) (IDA Frame)": "Payload",
    "Lander Frame (L Frame)": "Lander",
    "IDC Frame": "IDC",
    "Site (S_N Frame) (Surface Frame)": "Site",
    "Local Level (L_L Frame)": "LocalLevel",
    "SEIS ASM (Frame)": "SeisAsm",
    "SEIS Grapple Hook Frame": "SeisHook",
}
"""Names in Table 7, and names of the frames here."""
_MOUNTED = {
    "Blade 1": "Blade1",
    "Blade 2": "Blade2",
    "Scoop": "Scoop",
    "IDC": "IDC",
    "Grapple-Attach": "GrappleAttach",
}
_ON_DECK = {"seis": "SeisOnDeck", "wts": "WtsOnDeck", "hp3": "Hp3OnDeck"}

Poses = tuple[NDArray[np.int64], Floats, Floats]


def local_level_from_gravity(grav_vect: ArrayLike, azimuth: ArrayLike = 0.0) -> Floats:
    """Transform ``T_LocalLevel_Payload`` (..., 4, 4): z along gravity, x to the north, y to the east.

    Parameters
    ----------
    grav_vect : (..., 3)
        Direction of gravity in the Payload frame, of any length.
    azimuth : (...)
        Azimuth of Payload's x axis, rad from north towards east. Gravity does not tell it; with 0 the level
        x axis is the one under Payload's.

    Raises
    ------
    GeometryError
        If gravity has no direction, or lies along Payload's x axis.
    """
    gravity = floats("grav_vect", grav_vect, (..., 3))
    with np.errstate(invalid="ignore"):
        down = gravity / norms(gravity)
    ahead = np.array([1.0, 0.0, 0.0]) - down[..., :1] * down
    length = norms(ahead)
    if not bool((length > 1e-6).all()):
        raise GeometryError("gravity leaves no level direction", why=f"grav_vect is {gravity.tolist()}")
    ahead = ahead / length
    level = np.stack([ahead, np.cross(down, ahead), down], axis=-2)
    turn = rotations.matrix_from_rotation_vector(np.multiply.outer(np.asarray(azimuth), [0.0, 0.0, 1.0]))
    return se3.from_matrix(turn @ level, np.zeros(3))


def frames_of_table_7(
    arm: Arm,
    *,
    azimuth: float | None = None,
    site: ArrayLike | None = None,
    hook: ArrayLike | None = None,
    tether: float = 0.0,
    dampers: float | None = None,
) -> FrameTree:
    """Return the frames of Table 7 as far as they are known; the IDC hangs on `Forearm`, which moves.

    Parameters
    ----------
    arm : Arm
        Its gravity levels `LocalLevel`, which coincides with `Payload` but for its attitude.
    azimuth : float, optional
        Of Payload's x axis, rad from north towards east. Without it north is not known: `LocalLevel` is
        level, but its x axis is under Payload's, and the edge's source says so.
    site : (3,), optional
        Origin of `LocalLevel` in `Site`, north, east, down, m; needs `azimuth`. Without it there is no
        `Site`.
    hook : (3,), optional
        The grapple hook of SEIS in Payload, m; without it there is no `SeisHook`.
    tether : float
        Azimuth of the tether on the deck, which is the hook's x axis, about Payload's z, rad.
    dampers : float, optional
        Azimuth of the dampers at 36 degrees of the sphere valve, which is the x axis of `SeisAsm`, about the
        hook's z, rad; without it there is no `SeisAsm`.
    """
    if site is not None and azimuth is None:
        raise GeometryError("Site needs an azimuth", why="its x axis points north", hint="give azimuth")
    if dampers is not None and hook is None:
        raise GeometryError("SeisAsm needs a hook", why="it is centred at the grapple hook", hint="give hook")
    tree = standing_frames(arm)
    gravity = arm.parameters.numbers("RA_GRAVITY", "gravity_params.grav_vect")
    unknown = "" if azimuth is not None else "; north is not known, x is under Payload's"
    level = local_level_from_gravity(gravity, azimuth or 0.0)
    tree.add_static("LocalLevel", "Payload", level, source=f"RA_GRAVITY{unknown}")
    if site is not None:
        place = se3.from_matrix(np.eye(3), floats("site", site, (3,)))
        tree.add_static("Site", "LocalLevel", place, source="given")
    if hook is not None:
        _add_seis(tree, floats("hook", hook, (3,)), tether, dampers)
    return tree


def _add_seis(tree: FrameTree, hook: Floats, tether: float, dampers: float | None) -> None:
    at_hook = se3.from_matrix(rotations.matrix_from_euler("Z", [tether]), hook)
    tree.add_static("Payload", "SeisHook", at_hook, source="given")
    if dampers is not None:
        turned = rotations.matrix_from_euler("ZX", [dampers, np.pi])  # z of the ASM frame points up
        tree.add_static("SeisHook", "SeisAsm", se3.from_matrix(turned, np.zeros(3)), source="given")


def tool_mount(arm: Arm, tool: Tool | str | int) -> tuple[str, Floats]:
    """The frame that carries a tool, `Wrist` or `Forearm`, and ``T_frame_tool`` (4, 4).

    The tool's z axis is its approach axis. A hanging tool has no such transform: ask for its Grapple-Attach.
    """
    chosen = arm.tool(tool)
    if chosen.kind == "hanging":
        raise GeometryError(
            f"{chosen.name} is not fixed to the arm",
            why="it hangs on an umbilical along gravity and may twist",
            hint="tool_pose tells where it is; Grapple-Attach is where it hangs",
        )
    on_wrist = se3.from_matrix(rotations.matrix_from_euler("Y", [chosen.offset[3]]), chosen.offset[:3])
    if chosen.kind == "rigid":
        return "Wrist", on_wrist
    wrist = arm.chain.steps(np.zeros(4))[3]  # x_rac is in the wrist frame, as if joint 4 were at zero
    return "Forearm", wrist @ on_wrist


def mounted_frames(arm: Arm) -> FrameTree:
    """Return what the parameters fix: the arm's base, rigid tools, the camera, and payloads on the deck."""
    tree = FrameTree()
    tree.add_static("Payload", "ArmBase", arm.mount, source="RA_LANDER_TO_RA")
    for name, frame in _MOUNTED.items():
        if arm.knows(name):
            parent, transform = tool_mount(arm, name)
            tree.add_static(parent, frame, transform, source=", ".join(arm.tool(name).origins))
    for name, frame in _ON_DECK.items():
        keys = f"{name}_t", f"{name}_q"
        if all(arm.parameters.has("PAYLOAD_COL_PARAMS", key) for key in keys):
            # The SIS says "lander frame", but these heights fit Payload only (errata).
            place, turn = (arm.parameters.numbers("PAYLOAD_COL_PARAMS", key) for key in keys)
            on_deck = se3.from_quaternion(rotations.normalise(turn), place)
            tree.add_static("Payload", frame, on_deck, source="PAYLOAD_COL_PARAMS")
    return tree


def standing_frames(arm: Arm, tree: FrameTree | None = None) -> FrameTree:
    """Return a copy of `tree`, by default the robot's frames, with what the parameters fix in their place.

    Nothing ties `Forearm` and `Wrist` to the base yet: `joint_edges` does.
    """
    result = (load("ida").frames if tree is None else tree).copy()
    for edge in mounted_frames(arm).edges:
        assert edge.matrix is not None
        result.add_static(edge.parent, edge.child, edge.matrix, source=edge.source, replace=True)
    return result


def moving_frames(
    arm: Arm, t_ns: ArrayLike, q: ArrayLike, *, clock: str = "sclk", source: str = "joint angles"
) -> FrameTree:
    """Return the frames of the whole arm at joint angles over time.

    Parameters
    ----------
    t_ns : (n,) int64
        Times on `clock`.
    q : (n, 4)
        Joint angles, rad; a row with a NaN is left out of the edges from that joint.
    """
    angles = floats("joint angles", q, ("n", 4))
    tree = standing_frames(arm)
    for joint in range(4):
        positions, orientations = _link_poses(arm, joint, angles[:, joint])
        tree.add_moving(
            LINKS[joint], LINKS[joint + 1], t_ns, positions, orientations, clock=clock, source=source
        )
    return tree


def joint_edges(arm: Arm, stream: Stream) -> FrameTree:
    """Return the edges that a stream of joint angles moves, ArmBase to Wrist.

    The stream's table is read when a lookup first needs it.

    Parameters
    ----------
    stream : Stream
        Of JointState, with `position` (n, 4) in rad.

    Returns
    -------
    FrameTree
        To be put into another: ``rec.frames.merge(joint_edges(arm, rec["Arm/SciHi/Encoders"]))``.
    """
    tree = FrameTree()
    for joint in range(4):
        poses = partial(_stream_poses, arm, stream, joint)
        tree.add_lazy(LINKS[joint], LINKS[joint + 1], poses, clock=stream.clock, source=stream.name)
    return tree


def _stream_poses(arm: Arm, stream: Stream, joint: int) -> Poses:
    angles = floats(f"positions of {stream.name}", stream.column("position"), ("n", 4))
    return stream.t_ns, *_link_poses(arm, joint, angles[:, joint])


def _link_poses(arm: Arm, joint: int, angle: Floats) -> tuple[Floats, Floats]:
    """Positions (n, 3) and quaternions (n, 4) of link frame i + 1 in frame i at angles (n,) of its joint."""
    chain = arm.chain
    positions = np.empty((len(angle), 3))
    positions[:, 0] = chain.a[joint] * np.cos(angle)
    positions[:, 1] = chain.a[joint] * np.sin(angle)
    positions[:, 2] = chain.d[joint]
    turned = rotations.quaternion_from_axis_angle((0.0, 0.0, 1.0), angle)
    twist = rotations.quaternion_from_axis_angle((1.0, 0.0, 0.0), chain.alpha[joint])
    return positions, rotations.multiply(turned, twist)
