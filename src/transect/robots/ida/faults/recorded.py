"""Telemetry for the fault detection from the IDA products of a recording."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.errors import StreamError
from transect.recording import Recording, Stream

from .telemetry import GAP_NS, Telemetry

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
