"""Keys of the arm's and the system's status text in the order of SIS 5.1.1, with their types and units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from transect.base.units import unit_of
from transect.robots.ida.parameters import fold

Form = Literal["int", "real", "hex", "code", "time", "text"]


@dataclass(frozen=True)
class Key:
    """One key of a status text.

    Attributes
    ----------
    name : str
        As printed, after the prefix.
    form : str
        `int`, `real`, `hex`, `code` (a number and a name: `5 RA_GRAPPLE`), `time` (SCLK), or `text`.
    size : int
        How many values; more than one stand in brackets.
    unit : str
        Unit in the text; see `scale`.
    digits : int or None
        Decimals printed; None for as many as there are.
    scale : float
        SI value of one unit of the text.
    """

    name: str
    form: Form = "int"
    size: int = 1
    unit: str = ""
    digits: int | None = None
    scale: float = 1.0

    @property
    def column(self) -> str:
        """Name of the column: dots become underscores, times count nanoseconds."""
        renamed = {"mtr.brake": "mtr_brake_on", "ace.calib_OK": "ace_calib_ok"}
        plain = renamed.get(self.name, self.name.replace(".", "_"))
        return f"{plain}_ns" if self.form == "time" else plain

    @property
    def si_unit(self) -> str:
        """Unit of the column."""
        if self.form == "time":
            return "ns"
        return {"mA": "A", "Wh": "J"}.get(self.unit, self.unit)


@dataclass(frozen=True)
class StatusText:
    """One of the two kinds of status text: its prefix and its keys."""

    prefix: str
    keys: tuple[Key, ...]

    def known(self) -> dict[str, Key]:
        """Return the keys by their folded full name."""
        return {fold(f"{self.prefix}.{key.name}"): key for key in self.keys}

    @property
    def width(self) -> int:
        """Characters of the longest full name, to align the equals signs."""
        return max(len(self.prefix) + 1 + len(key.name) for key in self.keys)


ARM = StatusText(
    "ra_status",
    (
        Key("ace.calib_OK"),
        Key("ace.bus30v_err"),
        Key("ace.parity_err"),
        Key("ace.msg_err"),
        Key("ace.load_box"),
        Key("ace.self_test"),
        Key("mtr.pwr_on", size=4),
        Key("mtr.rotation", size=4),
        Key("mtr.over_current", size=4),
        Key("mtr.brake", size=4),
        Key("mtr.current", "real", 4, "A", 3),
        Key("jnt.enc", "real", 4, "rad", 3),
        Key("jnt.pot", "real", 4, "rad", 3),
        Key("jnt.temp", "real", 4, "degC", 3),
        Key("ref", "real", 2, "V", 3),
        Key("htr_crnt", "real", 1, "A", 3),
        Key("agnd", "real", 1, "V", 3),
        Key("time", "time", digits=1),
    ),
)

SYSTEM = StatusText(
    "sys_status",
    (
        Key("curr_limit", "real", 4, "mA", scale=unit_of("mA").scale),
        Key("mtr_volt", "real", 4, "V"),
        Key("brake", size=4),
        Key("use_pots", size=4),
        Key("htr_on", size=4),
        Key("tool", "code"),
        Key("cool_down"),
        Key("fault_chk_mask", "hex", 2),
        Key("fault_status", "hex", 2),
        Key("act_cmd", "code"),
        Key("act_args", "text"),
        Key("task_cmd", "code"),
        Key("task_args", "text"),
        Key("target.q", "real", 4, "rad", 3),
        Key("target.x", "real", 4, "m m m rad", 3),
        Key("via.q", "real", 4, "rad", 3),
        Key("via.x", "real", 4, "m m m rad", 3),
        Key("via_step"),
        Key("via_time", "time", digits=1),
        Key("col_status.has_collisions"),
        Key("col_status.link1"),
        Key("col_status.link2"),
        Key("col_status.obj1"),
        Key("col_status.obj2"),
        Key("rotation_cmd", size=4),
        Key("delta_via.dq", "real", 4, "rad", 3),
        Key("delta_via.dx", "real", 4, "m m m rad", 3),
        Key("delta_via.mag", "real", 1, "m", 4),
        Key("algo_code", "code"),
        Key("algo_code_override", "code"),
        Key("delta_via_code", "code"),
        Key("plane_angle", "real", 1, "rad", 4),
        Key("tau", "real", 4, "N m", 1),
        Key("delta_tau", "real", 1, "N m", 4),
        Key("track_state", "code"),
        Key("energy_limit", "real", 1, "Wh", 1, unit_of("Wh").scale),
        Key("energy_value", "real", 1, "Wh", 1, unit_of("Wh").scale),
        Key("time_limit", "time", digits=1),  # the text says minutes, the example is an SCLK
        Key("grapple_state", "code"),
        Key("grapple_temp", "real", 1, "degC", 1),
        Key("grapple_exp_time", "time", digits=6),
        Key("grapple_phase", "code"),
        Key("mtr_volt_sign", size=4),
        Key("actively_holding_position"),
        Key("time", "time", digits=1),
    ),
)
