"""What columns mean: the words of the types' own documentation, for labels."""

from __future__ import annotations

import dataclasses
import inspect
import re
from functools import cache

TIMES = {
    "t_ns": "Time in nanoseconds on the {clock} clock",
    "log_ns": "Time at which the sample was logged, in nanoseconds",
}
CLOCKS = {
    "utc": "UTC, since 1970-01-01",
    "device": "device's own",
    "sclk": "spacecraft",
    "index": "index (samples are counted, not timed)",
}
_ENTRY = re.compile(r"(?P<names>[\w, ]+) : (?P<shape>.*)").fullmatch


@cache
def describe_columns(kind: type) -> dict[str, str]:
    """Return what each canonical column of a type means, out of the documentation of its fields."""
    said = describe_fields(kind)
    found: dict[str, str] = {}
    for field in dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ():
        columns = field.metadata.get("columns", ())
        title = field.name.replace("_", " ").capitalize()
        for name in columns:
            part = f", {name}" if len(columns) > 1 else ""
            text = said.get(field.name, "")
            found[name] = f"{title}{part}: {text}" if text else f"{title}{part}"
    return found


@cache
def describe_fields(kind: type) -> dict[str, str]:
    """Return what the `Attributes` of a type's docstring say of its fields, each on one line."""
    lines = inspect.cleandoc(kind.__doc__ or "").splitlines()
    if "Attributes" not in lines:
        return {}
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines[lines.index("Attributes") + 2 :]:
        entry = _ENTRY(line)
        if entry:
            current = []
            found.update((name.strip(), current) for name in entry["names"].split(","))
        elif line.startswith(" "):
            current.append(line.strip())
        elif line.strip():
            break
    return {name: _plain(" ".join(text)) for name, text in found.items() if text}


def _plain(text: str) -> str:
    return text.replace("``", "").replace("`", "")


def summary_of(kind: type) -> str:
    """Return the first line of a type's documentation."""
    return _plain((kind.__doc__ or kind.__name__).strip().splitlines()[0])
