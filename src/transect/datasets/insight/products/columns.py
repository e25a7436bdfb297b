"""Columns of SciHi and SciLo tables (SIS Table 12), their streams, and their codes (SIS Tables 13 to 15)."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transect.base.units import unit_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PHASES = ("Launch-Locked", "Stowed", "OK-To-Open", "SEIS-Grappled", "WTS-Grappled", "HP3-Grappled")
"""SIS Table 15."""
STATUS_GROUPS = ("motor_on", "rotation_negative", "over_current", "brake_off", "heater_on")
"""SIS Table 13, four bits each from bit 0 on, joint 1 in the lowest. The brake bit is 0 on, 1 off here, but
`ra_status.mtr.brake` is 0 off, 1 on: both keep their meaning, which is in their names."""
STATUS_BITS = tuple(f"{group}_{joint}" for group in STATUS_GROUPS for joint in (1, 2, 3, 4))
SPARE_BITS = 0xFFF0_0000
_OTHER_NAMES = {"rac": "IDC"}
"""The flight software uses the name of the camera from the Phoenix mission."""


@functools.lru_cache(maxsize=1024)
def status_word(text: str) -> int | None:
    """Parse a status word, decimal or `0x` hexadecimal; None if it is neither."""
    text = text.strip()
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", text):
        word = int(text, 16)
    elif re.fullmatch(r"\d+(\.0*)?", text):
        word = int(text.partition(".")[0])
    else:
        return None
    return word if word < 2**32 else None


def decode_status(words: NDArray[np.uint32]) -> dict[str, NDArray[np.bool_]]:
    """Return the (n,) bits of (n,) status words by name: `motor_on_1`, ..., `heater_on_4`."""
    import numpy as np

    return {name: (words >> np.uint32(bit)) & np.uint32(1) != 0 for bit, name in enumerate(STATUS_BITS)}


def encode_status(bits: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.uint32]:
    """Return the (n,) status words of the given bits; other bits are 0."""
    import numpy as np

    words = np.zeros(len(next(iter(bits.values()))), dtype=np.uint32)
    for bit, name in enumerate(STATUS_BITS):
        if name in bits:
            words |= np.asarray(bits[name], dtype=np.uint32) << np.uint32(bit)
    return words


def names_of_codes(codes: NDArray[np.int64], table: tuple[str, ...]) -> list[str]:
    """Return the name of each code, "" if the table has none."""
    numbers: list[int] = codes.tolist()
    return [table[code] if 0 <= code < len(table) else "" for code in numbers]


def name_of_text(text: str, code: int | None, table: Sequence[str]) -> str:
    """Return the name in a table for the text of the flight software, `RA_GRAPPLE` or `5 RA_GRAPPLE`.

    The number is used only without a text.
    """
    word = _normalise(re.sub(r"^RA_", "", text.strip(), flags=re.IGNORECASE))
    if word:
        word = _normalise(_OTHER_NAMES.get(word, word))
        return next((name for name in table if _normalise(name) == word), "")
    return table[code] if code is not None and 0 <= code < len(table) else ""


def _normalise(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


INVALID_CONSTANT = -99999.0
"""Value for "not measured", `invalid_constant` of the label."""

_MILLI = unit_of("mA").scale


@dataclass(frozen=True)
class ScienceColumn:
    """One column of the table."""

    name: str  # as in the label; the header adds the unit: `enc1(rad)`
    header_unit: str = ""  # unit in the header of the csv
    unit: str = ""  # SI unit
    scale: float = 1.0  # SI value of one unit of the file

    @property
    def header(self) -> str:
        """Heading in the csv."""
        return f"{self.name}({self.header_unit})" if self.header_unit else self.name


def _joints(name: str, header_unit: str, unit: str, scale: float = 1.0) -> tuple[ScienceColumn, ...]:
    return tuple(ScienceColumn(f"{name}{joint}", header_unit, unit, scale) for joint in (1, 2, 3, 4))


def _pose(suffix: str) -> tuple[ScienceColumn, ...]:
    # The SIS prints th_*(m); the values are angles (errata: th of a hanging tool is asin(g_z) = 1.5014).
    return (
        *(ScienceColumn(f"{axis}_{suffix}", "m", "m") for axis in "xyz"),
        ScienceColumn(f"th_{suffix}", "m", "rad"),
    )


COLUMNS: tuple[ScienceColumn, ...] = (
    ScienceColumn("time", "s", "ns"),
    ScienceColumn("elapsed_time", "hr", "s", unit_of("hr").scale),
    *_joints("enc", "rad", "rad"),
    *_joints("pot", "rad", "rad"),
    *_joints("tcase", "C", "degC"),
    *_joints("trotor", "C", "degC"),
    ScienceColumn("tgrapple", "C", "degC"),
    *_joints("cur", "mA", "A", _MILLI),
    *_joints("volt", "V", "V"),
    ScienceColumn("stat"),
    ScienceColumn("tool"),
    *_pose("enc"),
    *_pose("pot"),
    *_pose("enc_defl"),
    *_pose("pot_defl"),
    *_joints("v", "rad/s", "rad/s"),
    *_joints("tau", "N-m", "N m"),
    ScienceColumn("Fr", "N", "N"),
    ScienceColumn("Ft", "N", "N"),
    ScienceColumn("Fz", "N", "N"),
    ScienceColumn("htr_cur", "mA", "A"),  # scale: see `heater_scale`
    ScienceColumn("grapple_phase"),
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
"""Columns of the JointState streams, and the prefixes of the columns in the file."""
JOINT_COLUMNS = {
    f"{name}{joint}" for part in JOINTS.values() for name in part.values() for joint in (1, 2, 3, 4)
}
CODES = ("tool", "grapple_phase")
DECODED = (*STATUS_BITS, *(f"{code}_name" for code in CODES))
"""Columns derived from the codes in the file."""

MAX_HEATER_CURRENT_A = 10.0
"""Bound of the sum of the heater currents: 39.6 W (htr_power, SIS 5.1.3.2) at 30 V."""


def heater_scale(largest: float) -> float:
    """Return the value in ampere of one unit of `htr_cur`, from the largest value in the file.

    The header says mA, but the SIS prints 0.0015 where `ra_status.htr_crnt` prints 0.001 A: amperes. Values
    above `MAX_HEATER_CURRENT_A` are read as mA.
    """
    return _MILLI if largest > MAX_HEATER_CURRENT_A else 1.0


def plain_name(heading: str) -> str:
    """Return the column name of a heading: `#time(s)` is `time`."""
    return re.sub(r"\(.*\)$", "", heading.strip().lstrip("#").strip().strip('"')).strip()
