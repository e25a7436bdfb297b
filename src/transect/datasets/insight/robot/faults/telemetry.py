"""Inputs of the fault detection: named columns on one time axis.

Faults that need a missing column are "not checked"; NaN in a column is a sample that was not measured. Bits
are 0 and 1.
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

MAX_GAP_NS = 10_000_000_000
"""Longer gaps end a run of samples: the arm was off, or a product is missing. Not given by the SIS; the
period of the control loop is 0.1 s (`loop_time`)."""


class TelemetryColumn(NamedTuple):
    """Number of values per sample, unit and meaning of a column."""

    width: int
    unit: str
    what: str


COLUMNS: dict[str, TelemetryColumn] = {
    "enc": TelemetryColumn(4, "rad", "joint angles by the encoders"),
    "pot": TelemetryColumn(4, "rad", "joint angles by the potentiometers"),
    "use_pots": TelemetryColumn(4, "", "whether a joint is controlled by its potentiometer"),
    "enc_raw": TelemetryColumn(4, "LSB", "encoder counts"),
    "pot_raw": TelemetryColumn(4, "LSB", "readings of the potentiometers"),
    "v": TelemetryColumn(4, "rad/s", "joint velocities"),
    "tau": TelemetryColumn(4, "N m", "joint torques"),
    "cur": TelemetryColumn(4, "A", "motor currents"),
    "cur_raw": TelemetryColumn(4, "LSB", "readings of the motor currents"),
    "curr_limit": TelemetryColumn(4, "A", "limits of the motor currents in force"),
    "motor_on": TelemetryColumn(4, "", "whether a motor has power"),
    "over_current": TelemetryColumn(4, "", "whether the firmware saw an over-current"),
    "heater_on": TelemetryColumn(4, "", "whether the heater of a joint is on"),
    "grapple_heater_on": TelemetryColumn(1, "", "whether the grapple is heated"),
    # The SIS gives no slope of the heater current, so that amperes cannot be converted to counts.
    "htr_raw": TelemetryColumn(1, "LSB", "reading of the sum of the heater currents"),
    "tcase": TelemetryColumn(4, "degC", "temperatures of the motor cases"),
    "tcase_raw": TelemetryColumn(4, "LSB", "readings of the temperatures of the motor cases"),
    "trotor": TelemetryColumn(4, "degC", "temperatures of the rotors"),
    "tgrapple": TelemetryColumn(1, "degC", "temperature of the grapple"),
    "tgrapple_raw": TelemetryColumn(1, "LSB", "reading of the temperature of the grapple"),
    "fingers_open": TelemetryColumn(1, "", "whether the fingers-open limit switch is tripped"),
    "vref": TelemetryColumn(2, "V", "reference voltages"),
    "calib_ok": TelemetryColumn(1, "", "whether the A/D converter is calibrated"),
    "bus30v_err": TelemetryColumn(1, "", "whether the controller reports an error of the 30 V bus"),
    "algo_code": TelemetryColumn(1, "", "control algorithm: 1 accommodate, 2 contact, 3 free space"),
    "commanded_q": TelemetryColumn(4, "rad", "joint angles of the via point"),
    "commanded_pos": TelemetryColumn(3, "m", "where the via point has the tool, in the IDA frame"),
    "commanded_th": TelemetryColumn(1, "rad", "approach angle of the tool at the via point"),
    "pos": TelemetryColumn(3, "m", "where the tool is, in the IDA frame"),
    "th": TelemetryColumn(1, "rad", "approach angle of the tool"),
    "since_via": TelemetryColumn(1, "s", "time since the via point of a timed joint move began"),
    "undeflected": TelemetryColumn(4, "rad", "joint angles of the rigid arm"),
    "deflected": TelemetryColumn(4, "rad", "joint angles of the arm that sags to the same pose"),
    "dvia": TelemetryColumn(1, "m", "magnitude of delta via"),
    "attempts": TelemetryColumn(1, "", "attempts so far at the present subtrench"),
    "collision": TelemetryColumn(1, "", "whether the arm's model has a collision"),
}
"""Most of them are in SciHi rows (SIS Table 12), arm and system status (5.1.1); see `telemetry_of`."""


@dataclass(frozen=True, eq=False)
class ArmTelemetry:
    """Columns of `COLUMNS` on a time axis."""

    t_ns: Ints  # (n,), time of the samples
    # (n, k) with the k of `COLUMNS`; (n,) is accepted where k is 1
    columns: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    gap_ns: int = MAX_GAP_NS  # maximum time between consecutive samples
    # reason why a column is missing, if known
    absent: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, t_ns: ArrayLike, **columns: ArrayLike) -> ArmTelemetry:
        """Return telemetry of some columns, converted to float64 and checked.

        Raises
        ------
        GeometryError
            If a column is unknown, or its shape differs from the time axis or `COLUMNS`.
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
        """True (n,) where a sample does not follow its predecessor: at the start, and after a gap."""
        step = np.diff(self.t_ns)
        return np.concatenate([[True], (step < 0) | (step > self.gap_ns)])[: len(self)]

    @property
    def angle(self) -> Floats:
        """Joint angles (n, 4) of the controller: from the encoders, or the pots where `use_pots` is set."""
        if "use_pots" not in self:
            return self["enc"]
        return np.where(self["use_pots"] == 1, self.columns.get("pot", np.nan), self["enc"])

    @property
    def moving(self) -> Mask:
        """True (n, 1) where any motor has power."""
        return (self["motor_on"] == 1).any(axis=1, keepdims=True)

    @property
    def kept_on(self) -> Mask:
        """True (n, 4) where a motor has power and had it on the previous sample: it should have turned."""
        on = self["motor_on"] == 1
        return on & np.concatenate([np.zeros_like(on[:1]), on[:-1]])

    def change(self, name: str) -> Floats:
        """Absolute change (n, k) of a column since the previous sample; NaN if there is none."""
        values = self[name]
        step = np.abs(np.diff(values, axis=0, prepend=np.nan))
        return np.where(self.breaks[:, None], np.nan, step)

    def with_raw(self, parameters: Parameters) -> ArmTelemetry:
        """Add columns that can be computed from others: raw counts and current limits.

        Existing columns are kept. Raw counts are rounded to whole numbers; from a status text, which prints 1
        mrad, an encoder count has an error of up to 3 LSB.
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


def _grapple_raw(telemetry: ArmTelemetry, parameters: Parameters) -> Floats:
    nothing = np.full((len(telemetry), 4), np.nan)
    return conversions.raw_from_temperature(np.hstack([nothing, telemetry["tgrapple"]]), parameters)[:, 4:]


def _current_limits(telemetry: ArmTelemetry, parameters: Parameters) -> Floats:
    speed = telemetry.columns.get("v", np.zeros((len(telemetry), 4)))
    limits = current_limits(Motors.of(parameters), telemetry.columns.get("trotor"), speed)
    return np.where(np.isnan(speed), np.nan, limits)


_DERIVED: dict[str, tuple[str, Callable[[ArmTelemetry, Parameters], Floats]]] = {
    "enc_raw": ("enc", lambda t, p: conversions.encoder_from_angle(t["enc"], p)),
    "pot_raw": ("pot", lambda t, p: conversions.pot_from_angle(t["pot"], p)),
    "cur_raw": ("cur", lambda t, p: conversions.raw_from_current(t["cur"], p)),
    "tcase_raw": ("tcase", lambda t, p: conversions.raw_from_temperature(t["tcase"], p)),
    "tgrapple_raw": ("tgrapple", _grapple_raw),
    "curr_limit": ("cur", _current_limits),
}
"""By column: the required column, and the conversion."""


ColumnSource = tuple[str, tuple[str, ...]]
"""Suffix of the stream name, and the columns of that stream that are stacked."""


def _joints(name: str) -> ColumnSource:
    return "", tuple(f"{name}{joint}" for joint in (1, 2, 3, 4))


_SCIENCE: dict[str, ColumnSource] = {
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
_ARM: dict[str, ColumnSource] = {
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
_SYSTEM: dict[str, ColumnSource] = {
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
"""Streams of samples that can be tested, and the columns of each."""
_SYSTEM_STREAMS = ("History/System/Status", "System/Status")
_MEASURED = ("fingers_open",)
"""Measured columns of the system status: they are not repeated over the samples of other streams."""
_NOT_RECORDED = {
    "htr_raw": "the SIS gives no slope by which to make counts of the heater current",
    "since_via": "no product tells timed moves from others",
    "deflected": "no product has the joint angles of the deflected arm",
    "undeflected": "no product has the joint angles of the deflected arm",
    "attempts": "no product counts the attempts at a subtrench",
}


def streams_of(recording: Recording) -> tuple[str, ...]:
    """Return the streams of a recording that `telemetry_of` accepts, the best first."""
    return tuple(name for name in STREAMS if name in recording and len(recording[name]))


def telemetry_of(recording: Recording, stream: str = "") -> ArmTelemetry:
    """Return the telemetry of a recording of the IDA for the fault detection.

    The samples are those of one stream, sorted by time, since runs of anomalies are counted in samples.
    Commands in the system status (via points, limits, control algorithm, heaters) are valid until the next
    status, for at most 10 s; measurements of a status are used only in its own telemetry.

    Parameters
    ----------
    recording : Recording
        Of IDA products.
    stream : str
        One of `streams_of`; default: the first.

    Raises
    ------
    StreamError
        If the recording has no such stream.
    """
    available = streams_of(recording)
    name = stream or next(iter(available), "")
    if name not in available:
        raise StreamError(
            f"{recording.name} has no stream {name or 'of the arm'} to look for faults in",
            hint=f"it has {', '.join(available)}" if available else f"expected one of {', '.join(STREAMS)}",
        )
    t_ns = recording[name].t_ns
    columns = _read_columns(recording, name)
    for other in _SYSTEM_STREAMS:
        if other in available:
            more = _find_commands(recording[other], t_ns)
            columns = _fill(columns, more if other == name else _without(more, _MEASURED))
    order = np.argsort(t_ns, kind="stable")
    measured = {key: values[order] for key, values in columns.items() if not np.isnan(values).all()}
    return dataclasses.replace(ArmTelemetry.of(t_ns[order], **measured), absent=_NOT_RECORDED)


def _read_columns(recording: Recording, name: str) -> dict[str, Floats]:
    found: dict[str, Floats] = {}
    for key, (part, names) in STREAMS[name].items():
        if name + part in recording and set(names) <= set(recording[name + part].columns):
            found[key] = recording[name + part].array(*names)
    return found


def _fill(columns: dict[str, Floats], more: dict[str, Floats]) -> dict[str, Floats]:
    """Fill missing columns and NaN from other columns at the same times."""
    filled = {key: np.where(np.isnan(columns[key]), more[key], columns[key]) for key in columns.keys() & more}
    return {**more, **columns, **filled}


def _without(columns: dict[str, Floats], names: tuple[str, ...]) -> dict[str, Floats]:
    return {key: values for key, values in columns.items() if key not in names}


def _find_commands(system: Stream, t_ns: Ints) -> dict[str, Floats]:
    """Return the commands in the latest system status before each time, NaN where it is too old."""
    order = np.argsort(system.t_ns, kind="stable")
    times = system.t_ns[order]
    latest = np.searchsorted(times, t_ns, side="right") - 1
    valid = (latest >= 0) & (t_ns - times[latest] <= MAX_GAP_NS)
    rows = order[latest]
    return {
        key: np.where(valid[:, None], np.asarray(make(system), dtype=np.float64)[rows], np.nan)
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
