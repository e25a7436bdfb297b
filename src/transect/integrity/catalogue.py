"""Catalogue of all checks: those of `integrity/checks`, and those of plug-ins.

Names are listed without importing a check.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from transect.base import plugins
from transect.errors import did_you_mean

from .model import Check, CheckError


def names() -> tuple[str, ...]:
    """Return the names of all checks, without importing them."""
    return plugins.names("checks")


def load(name: str) -> type[Check]:
    """Return the class of a check by its name."""
    if name not in plugins.strings("checks"):
        raise CheckError(f"there is no check {name!r}", hint=did_you_mean(name, names()))
    found = plugins.load("checks", name)
    return _class_in(found, name) if inspect.ismodule(found) else found


def _class_in(module: Any, name: str) -> type[Check]:
    classes = [each for each in vars(module).values() if inspect.isclass(each) and issubclass(each, Check)]
    own = [each for each in classes if each.__module__ == module.__name__ and each.id]
    if len(own) != 1:
        raise CheckError(f"the file of the check {name!r} has {len(own)} classes with an id, expected one")
    return own[0]


def load_all() -> Mapping[str, type[Check]]:
    """Return all checks by name, in the order of their identifiers."""
    every = {name: load(name) for name in names()}
    return dict(sorted(every.items(), key=lambda item: (item[1].id[:1] not in "TSCXE", _rank(item[1].id))))


def _rank(identifier: str) -> tuple[int, str]:
    return "TSCXE".find(identifier[:1]), identifier


def find(name: str) -> str:
    """Return the name of a check, given its name or its identifier."""
    if name in names():
        return name
    for known, check in load_all().items():
        if check.id.lower() == name.lower():
            return known
    ids = [check.id for check in load_all().values()]
    raise CheckError(f"there is no check {name!r}", hint=did_you_mean(name, (*names(), *ids)))


class CheckDescription(NamedTuple):
    """Description of a check for the documentation."""

    id: str
    name: str
    judges: str
    measures: str
    limits: str
    motive: str


def describe() -> list[CheckDescription]:
    """Return what each check judges and measures, and its limits, from the checks themselves."""
    return [_describe(name, check) for name, check in load_all().items()]


def _describe(name: str, check: type[Check]) -> CheckDescription:
    text, _, motive = inspect.cleandoc(check.__doc__ or "").partition("Motive:")
    limits = [
        f"{key} {limit.warn:g} / {limit.fail:g} {limit.unit}".rstrip() + f" {limit.reason}"
        for key, limit in check.limits.items()
    ]
    judges = ["any" if kind is object else kind.__name__ for kind in check.inputs[0].types]
    measures = " ".join(text.split("\n\n")[0].split()).replace("``", "")
    return CheckDescription(
        check.id, name, ", ".join(judges), measures, "; ".join(limits), " ".join(motive.split())
    )


def markdown_table() -> str:
    """Return all checks as a Markdown table."""
    rows = [("check", "name", "judges", "measures", "warn / fail", "motive"), ("---",) * 6, *describe()]
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)
