"""Columns of SciHi and SciLo tables (SIS Table 12, label of appendix E), and the streams they go to."""

from __future__ import annotations

import re
from dataclasses import dataclass

from transect.base.units import unit_of

from .codes import STATUS_BITS

MISSING = -99999.0
MISSING_TEXT = "-99999.0000"
"""The label's invalid_constant."""

_MILLI = unit_of("mA").scale


@dataclass(frozen=True)
class Column:
    """One column of the table.

    Attributes
    ----------
    name : str
        As the label spells it; the header adds the unit: `enc1(rad)`.
    header_unit : str
        Unit in the header of the csv.
    unit : str
        Unit inside.
    scale : float
        Value inside of one unit of the file.
    """

    name: str
    header_unit: str = ""
    unit: str = ""
    scale: float = 1.0

    @property
    def header(self) -> str:
        """Heading in the csv."""
        return f"{self.name}({self.header_unit})" if self.header_unit else self.name


def _joints(name: str, header_unit: str, unit: str, scale: float = 1.0) -> tuple[Column, ...]:
    return tuple(Column(f"{name}{joint}", header_unit, unit, scale) for joint in (1, 2, 3, 4))


def _pose(suffix: str) -> tuple[Column, ...]:
    # The SIS prints th_*(m); the values are angles (errata: th of a hanging tool is asin(g_z) = 1.5014).
    return (*(Column(f"{axis}_{suffix}", "m", "m") for axis in "xyz"), Column(f"th_{suffix}", "m", "rad"))


COLUMNS: tuple[Column, ...] = (
    Column("time", "s", "ns"),
    Column("elapsed_time", "hr", "s", unit_of("hr").scale),
    *_joints("enc", "rad", "rad"),
    *_joints("pot", "rad", "rad"),
    *_joints("tcase", "C", "degC"),
    *_joints("trotor", "C", "degC"),
    Column("tgrapple", "C", "degC"),
    *_joints("cur", "mA", "A", _MILLI),
    *_joints("volt", "V", "V"),
    Column("stat"),
    Column("tool"),
    *_pose("enc"),
    *_pose("pot"),
    *_pose("enc_defl"),
    *_pose("pot_defl"),
    *_joints("v", "rad/s", "rad/s"),
    *_joints("tau", "N-m", "N m"),
    Column("Fr", "N", "N"),
    Column("Ft", "N", "N"),
    Column("Fz", "N", "N"),
    Column("htr_cur", "mA", "A"),  # scale: see `heater_scale`
    Column("grapple_phase"),
)
"""58 columns; Table 12 lacks `elapsed_time`."""

BY_NAME = {column.name: column for column in COLUMNS}
NAMES_58 = tuple(BY_NAME)
NAMES_57 = tuple(name for name in NAMES_58 if name != "elapsed_time")

TOOL_POSE = tuple(c.name for suffix in ("enc", "pot", "enc_defl", "pot_defl") for c in _pose(suffix))
FORCES = ("Fr", "Ft", "Fz")
JOINTS = {
    "encoders": {"position": "enc", "velocity": "v", "effort": "tau"},
    "potentiometers": {"position": "pot"},
}
"""Columns of the JointState streams, and the columns of the file that they gather."""
GATHERED = {f"{name}{joint}" for part in JOINTS.values() for name in part.values() for joint in (1, 2, 3, 4)}
CODES = ("tool", "grapple_phase")
DECODED = (*STATUS_BITS, *(f"{code}_name" for code in CODES))
"""Columns that are not in the file but derived from its codes."""

HEATER_MAX_A = 10.0
"""All heaters draw 39.6 W (htr_power, SIS 5.1.3.2) at 30 V: no sum of currents in amperes exceeds this."""


def heater_scale(largest: float) -> float:
    """Return the value in ampere of one unit of `htr_cur`, judged by the largest in the file.

    The header says mA, but the SIS prints 0.0015 where `ra_status.htr_crnt` prints 0.001 A: amperes. A file
    that holds more than `HEATER_MAX_A` is taken at its word.
    """
    return _MILLI if largest > HEATER_MAX_A else 1.0


def bare_name(heading: str) -> str:
    """Return the column name of a heading: `#time(s)` is `time`."""
    return re.sub(r"\(.*\)$", "", heading.strip().lstrip("#").strip().strip('"')).strip()
