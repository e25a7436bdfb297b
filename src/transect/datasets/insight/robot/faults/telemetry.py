"""What the fault detection of the arm looks at: named columns on one time axis.

A column that is not there makes the faults that need it "not checked"; NaN in a column is a sample that was
not measured. Bits are 0 and 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError, StreamError, TransectError, did_you_mean
from transect.geometry.array_checks import floats, same_length, times_ns
from transect.recording import Recording, Stream

from .. import conversions
from ..motor import Motors, current_limits
from ..parameters import Parameters

GAP_NS = 10_000_000_000
"""Samples further apart than this do not follow on each other: the arm slept, or a product is missing. The
SIS does not say; the control loop takes 0.1 s (`loop_time`)."""


class Column(NamedTuple):
    """One kind of telemetry: numbers in a row, unit, and what it is."""

    width: int
    unit: str
    what: str


COLUMNS: dict[str, Column] = {
    "enc": Column(4, "rad", "joint angles by the encoders"),
    "pot": Column(4, "rad", "joint angles by the potentiometers"),
    "use_pots": Column(4, "", "whether a joint is controlled by its potentiometer"),
    "enc_raw": Column(4, "LSB", "encoder counts"),
    "pot_raw": Column(4, "LSB", "readings of the potentiometers"),
    "v": Column(4, "rad/s", "joint velocities"),
    "tau": Column(4, "N m", "joint torques"),
    "cur": Column(4, "A", "motor currents"),
    "cur_raw": Column(4, "LSB", "readings of the motor currents"),
    "curr_limit": Column(4, "A", "limits of the motor currents in force"),
    "motor_on": Column(4, "", "whether a motor has power"),
    "over_current": Column(4, "", "whether the firmware saw an over-current"),
    "heater_on": Column(4, "", "whether the heater of a joint is on"),
    "grapple_heater_on": Column(1, "", "whether the grapple is heated"),
    # The SIS gives no slope of the heater current, so that amperes cannot be made counts again.
    "htr_raw": Column(1, "LSB", "reading of the sum of the heater currents"),
    "tcase": Column(4, "degC", "temperatures of the motor cases"),
    "tcase_raw": Column(4, "LSB", "readings of the temperatures of the motor cases"),
    "trotor": Column(4, "degC", "temperatures of the rotors"),
    "tgrapple": Column(1, "degC", "temperature of the grapple"),
    "tgrapple_raw": Column(1, "LSB", "reading of the temperature of the grapple"),
    "fingers_open": Column(1, "", "whether the fingers-open limit switch is tripped"),
    "vref": Column(2, "V", "reference voltages"),
    "calib_ok": Column(1, "", "whether the A/D converter is calibrated"),
    "bus30v_err": Column(1, "", "whether the controller reports an error of the 30 V bus"),
    "algo_code": Column(1, "", "control algorithm: 1 accommodate, 2 contact, 3 free space"),
    "commanded_q": Column(4, "rad", "joint angles of the via point"),
    "commanded_pos": Column(3, "m", "where the via point has the tool, in the IDA frame"),
    "commanded_th": Column(1, "rad", "approach angle of the tool at the via point"),
    "pos": Column(3, "m", "where the tool is, in the IDA frame"),
    "th": Column(1, "rad", "approach angle of the tool"),
    "since_via": Column(1, "s", "time since the via point of a timed joint move began"),
    "undeflected": Column(4, "rad", "joint angles of the rigid arm"),
    "deflected": Column(4, "rad", "joint angles of the arm that sags to the same pose"),
    "dvia": Column(1, "m", "magnitude of delta via"),
    "attempts": Column(1, "", "attempts so far at the present subtrench"),
    "collision": Column(1, "", "whether the arm's model has a collision"),
}
"""SciHi rows (SIS Table 12), arm and system status (5.1.1) give most of them; see `recorded`."""


@dataclass(frozen=True, eq=False)
class Telemetry:
    """Columns of `COLUMNS` on a time axis."""

    t_ns: Ints  # (n,), time of the samples
    # (n, k) with the k of `COLUMNS`; (n,) will do where k is 1
    columns: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    gap_ns: int = GAP_NS  # longest time between samples that follow on each other
    # why a column is not there, where that is known
    absent: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, t_ns: ArrayLike, **columns: ArrayLike) -> Telemetry:
        """Return telemetry of any columns, converted to float64 and checked.

        Raises
        ------
        GeometryError
            If a column is not known, or has another shape than the time axis and `COLUMNS` ask for.
        """
        axis = times_ns("t_ns", t_ns)
        return cls(axis, {name: _column(name, values, axis) for name, values in columns.items()})

    def __len__(self) -> int:
        return len(self.t_ns)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Floats:
        """Return a column, (n, k)."""
        return self.columns[name]

    @property
    def breaks(self) -> Mask:
        """True (n,) where a sample does not follow on the one before: at the start, and after a gap."""
        step = np.diff(self.t_ns)
        return np.concatenate([[True], (step < 0) | (step > self.gap_ns)])[: len(self)]

    @property
    def angle(self) -> Floats:
        """Joint angles (n, 4) by which the arm is controlled: the encoders', where `use_pots` the pots'."""
        if "use_pots" not in self:
            return self["enc"]
        return np.where(self["use_pots"] == 1, self.columns.get("pot", np.nan), self["enc"])

    @property
    def moving(self) -> Mask:
        """True (n, 1) where any motor has power."""
        return (self["motor_on"] == 1).any(axis=1, keepdims=True)

    @property
    def kept_on(self) -> Mask:
        """True (n, 4) where a motor has power and had it on the sample before: it should have turned."""
        on = self["motor_on"] == 1
        return on & np.concatenate([np.zeros_like(on[:1]), on[:-1]])

    def change(self, name: str) -> Floats:
        """By how much (n, k) a column changed since the sample before; NaN where there is none."""
        values = self[name]
        step = np.abs(np.diff(values, axis=0, prepend=np.nan))
        return np.where(self.breaks[:, None], np.nan, step)

    def with_raw(self, parameters: Parameters) -> Telemetry:
        """Add what can be computed of the other columns: raw numbers, and limits of the currents.

        Columns that are there stay. A raw number is rounded to a whole one; from a status text, which prints
        1 mrad, an encoder count is known to 3 LSB only.
        """
        added: dict[str, Floats] = {}
        absent: dict[str, str] = {}
        for name, (source, make) in _DERIVED.items():
            if name in self or source not in self:
                continue
            try:
                added[name] = make(self, parameters)
            except TransectError as error:
                absent[name] = error.what
        return dataclasses.replace(self, columns={**self.columns, **added}, absent={**self.absent, **absent})


def _column(name: str, values: ArrayLike, axis: Ints) -> Floats:
    if name not in COLUMNS:
        raise GeometryError(f"there is no telemetry {name!r}", hint=did_you_mean(name, COLUMNS))
    width = COLUMNS[name].width
    array = np.asarray(values, dtype=np.float64)
    array = floats(name, array[:, None] if array.ndim == 1 and width == 1 else array, ("n", width))
    same_length(t_ns=axis, **{name: array})
    return array


def _grapple_raw(telemetry: Telemetry, parameters: Parameters) -> Floats:
    nothing = np.full((len(telemetry), 4), np.nan)
    return conversions.raw_from_temperature(np.hstack([nothing, telemetry["tgrapple"]]), parameters)[:, 4:]


def _current_limits(telemetry: Telemetry, parameters: Parameters) -> Floats:
    speed = telemetry.columns.get("v", np.zeros((len(telemetry), 4)))
    limits = current_limits(Motors.of(parameters), telemetry.columns.get("trotor"), speed)
    return np.where(np.isnan(speed), np.nan, limits)


_DERIVED: dict[str, tuple[str, Callable[[Telemetry, Parameters], Floats]]] = {
    "enc_raw": ("enc", lambda t, p: conversions.encoder_from_angle(t["enc"], p)),
    "pot_raw": ("pot", lambda t, p: conversions.pot_from_angle(t["pot"], p)),
    "cur_raw": ("cur", lambda t, p: conversions.raw_from_current(t["cur"], p)),
    "tcase_raw": ("tcase", lambda t, p: conversions.raw_from_temperature(t["tcase"], p)),
    "tgrapple_raw": ("tgrapple", _grapple_raw),
    "curr_limit": ("cur", _current_limits),
}
"""Column: the column it needs, and how to make it."""


Place = tuple[str, tuple[str, ...]]
"""What follows the name of the stream, and the columns there that are put side by side."""


def _joints(name: str) -> Place:
    return "", tuple(f"{name}{joint}" for joint in (1, 2, 3, 4))


_SCIENCE: dict[str, Place] = {
    "enc": ("/Encoders", ("position",)),
    "v": ("/Encoders", ("velocity",)),
    "tau": ("/Encoders", ("effort",)),
    "pot": ("/Potentiometers", ("position",)),
    "pos": ("/Tool", ("x_enc", "y_enc", "z_enc")),
    "th": ("/Tool", ("th_enc",)),
    "tgrapple": ("", ("tgrapple",)),
    **{name: _joints(name) for name in ("cur", "tcase", "trotor")},
    **{name: _joints(f"{name}_") for name in ("motor_on", "over_current", "heater_on")},
}
_ARM: dict[str, Place] = {
    "enc": ("/Encoders", ("position",)),
    "pot": ("/Potentiometers", ("position",)),
    "motor_on": ("", ("mtr_pwr_on",)),
    "over_current": ("", ("mtr_over_current",)),
    "cur": ("", ("mtr_current",)),
    "tcase": ("", ("jnt_temp",)),
    "vref": ("", ("ref",)),
    "calib_ok": ("", ("ace_calib_ok",)),
    "bus30v_err": ("", ("ace_bus30v_err",)),
}
_SYSTEM: dict[str, Place] = {
    "tau": ("", ("tau",)),
    "tgrapple": ("", ("grapple_temp",)),
}
STREAMS = {
    "Arm/SciHi": _SCIENCE,
    "Arm/SciLo": _SCIENCE,
    "History/Arm/Status": _ARM,
    "Arm/Status": _ARM,
    "History/System/Status": _SYSTEM,
    "System/Status": _SYSTEM,
}
"""Streams of samples that can be tested, and what each has of its own."""
_SYSTEM_STREAMS = ("History/System/Status", "System/Status")
_READINGS = ("fingers_open",)
"""Of the system status, but measured: held over several samples, one reading would count for many."""
_NOT_RECORDED = {
    "htr_raw": "the SIS gives no slope by which to make counts of the heater current",
    "since_via": "no product tells timed moves from others",
    "deflected": "no product has the joint angles of the deflected arm",
    "undeflected": "no product has the joint angles of the deflected arm",
    "attempts": "no product counts the attempts at a subtrench",
}


def streams_of(recording: Recording) -> tuple[str, ...]:
    """Return the streams of a recording that `telemetry_of` can start from, the best first."""
    return tuple(name for name in STREAMS if name in recording and len(recording[name]))


def telemetry_of(recording: Recording, stream: str = "") -> Telemetry:
    """Return what a recording of the IDA gives for the fault detection.

    Samples are those of one stream, in order of time, since runs of anomalies are counted in samples. What
    the system status commands (via points, limits, control algorithm, heaters) holds until the next one, for
    10 s at most; what a status measures is only in the telemetry of that status.

    Parameters
    ----------
    recording : Recording
        As opened from IDA products.
    stream : str
        One of `streams_of`; the first of them unless given.

    Raises
    ------
    StreamError
        If the recording has no such stream.
    """
    there = streams_of(recording)
    name = stream or next(iter(there), "")
    if name not in there:
        raise StreamError(
            f"{recording.name} has no stream {name or 'of the arm'} to look for faults in",
            hint=f"it has {', '.join(there)}" if there else f"expected one of {', '.join(STREAMS)}",
        )
    t_ns = recording[name].t_ns
    columns = _own(recording, name)
    for other in _SYSTEM_STREAMS:
        if other in there:
            more = _find_commands(recording[other], t_ns)
            columns = _fill(columns, more if other == name else _without(more, _READINGS))
    order = np.argsort(t_ns, kind="stable")
    measured = {key: values[order] for key, values in columns.items() if not np.isnan(values).all()}
    return dataclasses.replace(Telemetry.of(t_ns[order], **measured), absent=_NOT_RECORDED)


def _own(recording: Recording, name: str) -> dict[str, Floats]:
    found: dict[str, Floats] = {}
    for key, (part, names) in STREAMS[name].items():
        if name + part in recording and set(names) <= set(recording[name + part].columns):
            found[key] = recording[name + part].array(*names)
    return found


def _fill(columns: dict[str, Floats], more: dict[str, Floats]) -> dict[str, Floats]:
    """Return columns with what they lack from others of the same times."""
    filled = {key: np.where(np.isnan(columns[key]), more[key], columns[key]) for key in columns.keys() & more}
    return {**more, **columns, **filled}


def _without(columns: dict[str, Floats], names: tuple[str, ...]) -> dict[str, Floats]:
    return {key: values for key, values in columns.items() if key not in names}


def _find_commands(system: Stream, t_ns: Ints) -> dict[str, Floats]:
    """Return what the latest system status before each time says of commands, NaN where it is too old."""
    order = np.argsort(system.t_ns, kind="stable")
    times = system.t_ns[order]
    latest = np.searchsorted(times, t_ns, side="right") - 1
    known = (latest >= 0) & (t_ns - times[latest] <= GAP_NS)
    rows = order[latest]
    return {
        key: np.where(known[:, None], np.asarray(make(system), dtype=np.float64)[rows], np.nan)
        for key, (needs, make) in _COMMANDS.items()
        if set(needs) <= set(system.columns)
    }


def _algorithm(system: Stream) -> Floats:
    override = system.array("algo_code_override")
    return np.where(override > 0, override, system.array("algo_code"))


def _grapple_heater(system: Stream) -> Floats:
    # grapple_exp_time is when the grapple stops heating, 0 if it does not heat.
    stops = system.array("grapple_exp_time_ns")
    return np.where(np.isnan(stops), np.nan, stops > system.t_ns[:, None])


def _fingers(system: Stream) -> Floats:
    # The numbers of grapple_state contradict each other in the SIS (5.1.1); the text is clear.
    texts: list[str] = system.column("grapple_state_text")
    return np.array([[np.nan if not text else float("open" in text.lower())] for text in texts])


_COMMANDS: dict[str, tuple[tuple[str, ...], Callable[[Stream], Floats]]] = {
    "commanded_q": (("via_q",), lambda system: system.array("via_q")),
    "commanded_pos": (("via_x",), lambda system: system.array("via_x")[:, :3]),
    "commanded_th": (("via_x",), lambda system: system.array("via_x")[:, 3:]),
    "use_pots": (("use_pots",), lambda system: system.array("use_pots")),
    "curr_limit": (("curr_limit",), lambda system: system.array("curr_limit")),
    "heater_on": (("htr_on",), lambda system: system.array("htr_on")),
    "dvia": (("delta_via_mag",), lambda system: system.array("delta_via_mag")),
    "collision": (("col_status_has_collisions",), lambda system: system.array("col_status_has_collisions")),
    "algo_code": (("algo_code", "algo_code_override"), _algorithm),
    "grapple_heater_on": (("grapple_exp_time_ns",), _grapple_heater),
    "fingers_open": (("grapple_state_text",), _fingers),
}
