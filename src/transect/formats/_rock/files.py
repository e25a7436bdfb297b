"""Logs that come in several files: which belong together, and what their streams are called then."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping


def groups_of(files: Iterable[str], numbered: str) -> dict[str, list[str]]:
    """Sort files by the log that they are part of.

    Parameters
    ----------
    files : iterable of str
    numbered : str
        Regular expression of a part's name: its groups are the log's name and the part's number.

    Returns
    -------
    dict of str to list of str
        The files of each log, in the order of their numbers; a file without one is a log of its own.
    """
    test = re.compile(numbered).fullmatch
    found: dict[str, list[tuple[int, str]]] = {}
    for file in sorted(files):
        match = test(file)
        name, number = (match[1], int(match[2])) if match else (file.partition(".")[0], 0)
        found.setdefault(name, []).append((number, file))
    return {name: [file for _, file in sorted(parts)] for name, parts in found.items()}


def stream_names(ports: Mapping[str, Collection[str]]) -> dict[tuple[str, str], str]:
    """Name the ports of several logs: as they are, or with the log's name before if several have them."""
    having = Counter(name for names in ports.values() for name in names)
    return {
        (log, name): name if having[name] == 1 else f"{log}/{name.lstrip('/')}"
        for log, names in ports.items()
        for name in names
    }
