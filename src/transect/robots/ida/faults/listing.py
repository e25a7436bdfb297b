"""The faults as rows of text, with the numbers of a parameter file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..parameter_sets import units
from ..parameters import Parameters
from .detection import FAULTS
from .rules import Fault, Key
from .safing import ALLOWANCES, MAX_FAULTS, Allowance

LOST = "not given"


class Row(NamedTuple):
    """One fault: name, meaning, parameters with values, when it is declared, section of the SIS, note."""

    name: str
    what: str
    parameters: str
    declared: str
    section: str
    note: str = ""


def table_of_faults(parameters: Parameters, faults: Sequence[Fault] = FAULTS) -> list[Row]:
    """Return one row a fault, and one for each counter of RA_MAX_FAULTS."""
    rows = [
        Row(
            fault.name,
            fault.what,
            "; ".join(_value(key, parameters) for key in fault.parameters),
            _describe(fault, parameters),
            fault.section,
            fault.note,
        )
        for fault in faults
    ]
    return rows + [_counter(allowance, parameters) for allowance in ALLOWANCES]


def _counter(allowance: Allowance, parameters: Parameters) -> Row:
    key = (MAX_FAULTS, allowance.parameter)
    given = parameters.has(*key)
    return Row(
        allowance.parameter,
        f"the arm is safed: {allowance.what}",
        _value(key, parameters),
        f"on fault number {parameters.number(*key) + 1:g}" if given else f"after {key[1]}: {LOST}",
        "5.1.3.16",
        f"counts {', '.join(allowance.faults)}" if allowance.faults else "seen by the flight software only",
    )


def _value(key: Key, parameters: Parameters) -> str:
    if not parameters.has(*key):
        return f"{key[0]} {key[1]}: {LOST}"
    unit = units(key[0]).get(key[1], "")
    numbers = np.atleast_1d(parameters.numbers(*key)).tolist()
    shown = numbers[:1] if len(set(numbers)) == 1 else numbers
    return f"{key[0]} {key[1]} = {' '.join(f'{number:g}' for number in shown)} {unit}".rstrip()


def _describe(fault: Fault, parameters: Parameters) -> str:
    if fault.samples is None:
        return "at once"
    if not parameters.has(*fault.samples):
        return f"after {fault.samples[1]} in a row: {LOST}"
    numbers = np.atleast_1d(fault.declared_on(parameters)).tolist()
    shown = numbers[:1] if len(set(numbers)) == 1 else numbers
    word = "more than" if fault.rule == "allowed" else "at least"
    return f"on number {' '.join(f'{n:g}' for n in shown)} in a row ({word} {fault.samples[1]})"
