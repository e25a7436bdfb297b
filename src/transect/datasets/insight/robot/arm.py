"""The arm and its tools, as a parameter file or the SIS describes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from transect.base.arrays import Floats
from transect.errors import GeometryError, TransectError, did_you_mean
from transect.geometry import rotations, se3
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
