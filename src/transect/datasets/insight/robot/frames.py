"""The frames of the arm and of its surroundings (SIS Table 7), standing and moving.

The seven frames of Table 7 are `Payload` (the IDA frame), `Lander`, `IDC`, `Site`, `LocalLevel`, `SeisAsm`
and `SeisHook`. The SIS gives numbers for the first three, and gravity for the level of `LocalLevel`; where
north is, where the site's origin is and where SEIS stands must be given. ``T_a_b`` takes points of b to a.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import rotations, se3
from transect.geometry.array_checks import floats, norms
from transect.recording import FrameTree, Stream
from transect.robots import load

from .arm import Arm, Tool

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
