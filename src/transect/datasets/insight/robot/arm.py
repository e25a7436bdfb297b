"""The arm and its tools, as a parameter file or the SIS describes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.errors import GeometryError, TransectError, did_you_mean
from transect.geometry import rotations, se3
from transect.geometry.array_checks import floats
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
_TWIST_TOLERANCE_RAD = 1e-4
"""The parameter file has 1.570799947: 1.5708 in single precision, a right angle."""


@dataclass(frozen=True, eq=False)
class ArmTool:
    """One of the tools of SIS Table 14."""

    name: str
    code: int  # its number in Table 14
    # `rigid`: fixed to the wrist; `camera`: fixed to the forearm, so joint 4 does not move it; `hanging`:
    # on the umbilical of the grapple, below the point `offset` along gravity
    kind: Kind
    offset: Floats  # (4,), x, y, z (m) and theta (rad) in the wrist frame; of the camera with joint 4 at zero
    # (3,), of a hanging tool: its distance below the attach point in the third element, m
    distance: Floats
    mass: float | None = None  # of a payload, kg
    origins: tuple[str, ...] = ()  # sources of these numbers

    @property
    def invented(self) -> bool:
        """Whether some of its numbers are fitted instead of given by the SIS or a parameter file."""
        return FITTED in self.origins


@dataclass(frozen=True, eq=False)
class DeploymentArm:
    """Kinematics of the arm and its parameters."""

    parameters: Parameters
    chain: Chain  # four joints in standard Denavit-Hartenberg parameters, with their limits

    @classmethod
    def of(cls, parameters: Parameters, *, fitted: bool = False) -> DeploymentArm:
        """Return the arm that a parameter file describes.

        Parameters
        ----------
        fitted : bool
            Whether `Parameters.with_fitted` provides the position of the grapple, which the SIS omits.
        """
        used = parameters.with_fitted() if fitted else parameters
        alpha = used.numbers("RA_ARM_PARAMS", "dh.alpha")
        if np.abs(alpha - _TWISTS).max() > _TWIST_TOLERANCE_RAD:
            raise GeometryError(
                f"dh.alpha is {alpha.tolist()}",
                where=used.origin("RA_ARM_PARAMS", "dh.alpha"),
                why="the arm is one yaw joint and three parallel pitch joints: pi/2, 0, 0, pi/2",
                hint="use transect.robots.chains.Chain for an arm of another shape",
            )
        chain = Chain(
            a=used.numbers("RA_ARM_PARAMS", "dh.a"),
            alpha=_TWISTS,
            d=used.numbers("RA_ARM_PARAMS", "dh.d"),
            lower=used.numbers("RA_JOINT_PARAMS", "q_min"),
            upper=used.numbers("RA_JOINT_PARAMS", "q_max"),
        )
        return cls(used, chain)

    @cached_property
    def mount(self) -> Floats:
        """``T_Payload_ArmBase`` (4, 4); `frame.q` of RA_LANDER_TO_RA is scalar first."""
        x = self.parameters.numbers("RA_LANDER_TO_RA", "frame.x")
        q = self.parameters.numbers("RA_LANDER_TO_RA", "frame.q")
        return se3.from_quaternion(rotations.normalise(np.roll(q, -1)), x)

    @cached_property
    def down(self) -> Floats:
        """Unit vector of gravity (3,) in ArmBase; the SIS gives it in Payload."""
        vector = self.mount[:3, :3].T @ self.parameters.numbers("RA_GRAVITY", "gravity_params.grav_vect")
        length = float(np.linalg.norm(vector))
        if not length > 0.0:
            where = self.parameters.origin("RA_GRAVITY", "gravity_params.grav_vect")
            raise GeometryError("gravity_params.grav_vect has no direction", where=where)
        return vector / length

    def tool(self, name: ArmTool | str | int) -> ArmTool:
        """Return a tool by its name (`Grapple`, also `RA_GRAPPLE`) or its code of Table 14.

        Raises
        ------
        MissingParameterError
            If neither the parameter file nor the SIS gives its position; the SIS omits scoop and grapple.
        """
        if isinstance(name, ArmTool):
            return name
        label = _label(name)
        origins, values = zip(*(self._find_offset(key) for key in _keys(label)), strict=True)
        hangs = label in _HANGING
        return ArmTool(
            name=label,
            code=TOOLS.index(label),
            kind="camera" if label == "IDC" else "hanging" if hangs else "rigid",
            offset=values[0],
            distance=values[1][:3] if hangs else np.zeros(3),
            mass=self._payload_mass(label),
            origins=tuple(dict.fromkeys(origins)),
        )

    def has_tool(self, name: str | int) -> bool:
        """Whether the parameters give the position of a tool."""
        return all(
            key == "x_wrist" or self.parameters.has("RA_ARM_PARAMS", key) for key in _keys(_label(name))
        )

    def _find_offset(self, key: str) -> tuple[str, Floats]:
        if key == "x_wrist" and not self.parameters.has("RA_ARM_PARAMS", key):
            return "its definition", np.zeros(4)  # the wrist in the wrist frame
        source = self.parameters.origin("RA_ARM_PARAMS", key)
        return source, self.parameters.numbers("RA_ARM_PARAMS", key)

    def _payload_mass(self, label: str) -> float | None:
        key = f"{label.lower()}_mass"
        if label not in _PAYLOADS or not self.parameters.has("RA_DEFL_GENERAL", key):
            return None
        return self.parameters.number("RA_DEFL_GENERAL", key)


def _keys(label: str) -> tuple[str, ...]:
    """Return the keys of RA_ARM_PARAMS that give the position of a tool."""
    if label in _HANGING:
        return "x_grapple_attach", f"dist_{label.lower()}"
    return (_OFFSETS[label],)


def _label(name: str | int) -> str:
    """Return the name in Table 14 of a code or of any spelling of the name."""
    if not isinstance(name, str):
        if 0 <= name < len(TOOLS):
            return TOOLS[name]
        raise TransectError(
            f"there is no tool {name}", hint=f"codes are 0 to {len(TOOLS) - 1} (SIS Table 14)"
        )
    plain = _normalise(re.sub(r"^ra_", "", name, flags=re.IGNORECASE))
    plain = _OTHER_NAMES.get(plain, plain)
    for label in TOOLS:
        if _normalise(label) == plain:
            return label
    raise TransectError(f"there is no tool {name!r}", hint=did_you_mean(name, TOOLS))


def _normalise(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


LINKS = ("ArmBase", "Shoulder", "UpperArm", "Forearm", "Wrist")
"""Names of the Denavit-Hartenberg frames 0 to 4; frame i moves with joint i."""
_MOUNTED = {
    "Blade 1": "Blade1",
    "Blade 2": "Blade2",
    "Scoop": "Scoop",
    "IDC": "IDC",
    "Grapple-Attach": "GrappleAttach",
}
_ON_DECK = {"seis": "SeisOnDeck", "wts": "WtsOnDeck", "hp3": "Hp3OnDeck"}

Poses = tuple[NDArray[np.int64], Floats, Floats]


def tool_mount(arm: DeploymentArm, tool: ArmTool | str | int) -> tuple[str, Floats]:
    """The frame that carries a tool, `Wrist` or `Forearm`, and ``T_frame_tool`` (4, 4).

    The tool's z axis is its approach axis. A hanging tool has no such transform: ask for its Grapple-Attach.
    """
    chosen = arm.tool(tool)
    if chosen.kind == "hanging":
        raise GeometryError(
            f"{chosen.name} is not fixed to the arm",
            why="it hangs on an umbilical along gravity and may twist",
            hint="tool_pose gives its pose; Grapple-Attach is its attach point",
        )
    on_wrist = se3.from_matrix(rotations.matrix_from_euler("Y", [chosen.offset[3]]), chosen.offset[:3])
    if chosen.kind == "rigid":
        return "Wrist", on_wrist
    wrist = arm.chain.steps(np.zeros(4))[3]  # x_rac is given in the wrist frame at joint 4 = 0
    return "Forearm", wrist @ on_wrist


def mounted_frames(arm: DeploymentArm) -> FrameTree:
    """Return the static frames of the parameters: arm base, rigid tools, camera, and payloads on the deck."""
    tree = FrameTree()
    tree.add_static("Payload", "ArmBase", arm.mount, source="RA_LANDER_TO_RA")
    for name, frame in _MOUNTED.items():
        if arm.has_tool(name):
            parent, transform = tool_mount(arm, name)
            tree.add_static(parent, frame, transform, source=", ".join(arm.tool(name).origins))
    for name, frame in _ON_DECK.items():
        keys = f"{name}_t", f"{name}_q"
        if all(arm.parameters.has("PAYLOAD_COL_PARAMS", key) for key in keys):
            # The SIS says "lander frame", but the heights are correct only in Payload.
            position, orientation = (arm.parameters.numbers("PAYLOAD_COL_PARAMS", key) for key in keys)
            on_deck = se3.from_quaternion(rotations.normalise(orientation), position)
            tree.add_static("Payload", frame, on_deck, source="PAYLOAD_COL_PARAMS")
    return tree


def static_frames(arm: DeploymentArm, tree: FrameTree | None = None) -> FrameTree:
    """Return a copy of `tree`, by default the frames of the robot, with the static frames of the parameters.

    `joint_edges` connects `Forearm` and `Wrist` to the base.
    """
    result = (load("ida").frames if tree is None else tree).copy()
    for edge in mounted_frames(arm).edges:
        assert edge.matrix is not None
        result.add_static(edge.parent, edge.child, edge.matrix, source=edge.source, replace=True)
    return result


def joint_edges(arm: DeploymentArm, stream: Stream) -> FrameTree:
    """Return the moving frames of a stream of joint angles, ArmBase to Wrist.

    The table of the stream is read at the first lookup.

    Parameters
    ----------
    stream : Stream
        JointState with `position` (n, 4) in rad.

    Returns
    -------
    FrameTree
        For example for ``rec.frames.merge(joint_edges(arm, rec["Arm/SciHi/Encoders"]))``.
    """
    tree = FrameTree()
    for joint in range(4):
        poses = partial(_stream_poses, arm, stream, joint)
        tree.add_lazy(LINKS[joint], LINKS[joint + 1], poses, clock=stream.clock, source=stream.name)
    return tree


def _stream_poses(arm: DeploymentArm, stream: Stream, joint: int) -> Poses:
    angles = floats(f"positions of {stream.name}", stream.column("position"), ("n", 4))
    return stream.t_ns, *_link_poses(arm, joint, angles[:, joint])


def _link_poses(arm: DeploymentArm, joint: int, angle: Floats) -> tuple[Floats, Floats]:
    """Positions (n, 3) and quaternions (n, 4) of link frame i + 1 in frame i at joint angles (n,)."""
    chain = arm.chain
    positions = np.empty((len(angle), 3))
    positions[:, 0] = chain.a[joint] * np.cos(angle)
    positions[:, 1] = chain.a[joint] * np.sin(angle)
    positions[:, 2] = chain.d[joint]
    rotation = rotations.quaternion_from_axis_angle((0.0, 0.0, 1.0), angle)
    twist = rotations.quaternion_from_axis_angle((1.0, 0.0, 0.0), chain.alpha[joint])
    return positions, rotations.multiply(rotation, twist)
