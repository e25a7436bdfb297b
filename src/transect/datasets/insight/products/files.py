"""Which files of a folder are IDA products, and of which kind: by their name, or by what they begin with."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from transect.recording import Loss, Source

from .columns import BY_NAME, bare_name
from .names import Kind, kind_of_name, parse_name, parse_picture

PEEK = 4096
_STATUS = re.compile(rb"\b(ra|sys)[ _]status\.", re.IGNORECASE)
_POINTS = re.compile(rb"points? before latest", re.IGNORECASE)
_SETS = re.compile(rb"^\s*Parameter Set\s*:", re.IGNORECASE | re.MULTILINE)


@dataclass
class Products:
    """The files of a recording, by kind; each list in the order of the spacecraft clock."""

    status: list[str] = field(default_factory=list[str])
    history: list[str] = field(default_factory=list[str])
    parameters: list[str] = field(default_factory=list[str])
    science: list[str] = field(default_factory=list[str])
    coordinates: list[str] = field(default_factory=list[str])
    label: list[str] = field(default_factory=list[str])
    picture: list[str] = field(default_factory=list[str])
    others: list[str] = field(default_factory=list[str])
    losses: list[Loss] = field(default_factory=list[Loss])

    def label_of(self, name: str) -> str | None:
        """Return the label beside a file: the same name in any case, with the extension .xml."""
        return self._labels.get(_without_suffix(name))

    def lone_labels(self) -> list[str]:
        """Return the labels whose file is not here."""
        data = [*self.science, *self.status, *self.history, *self.parameters, *self.coordinates]
        unread = [*self.others, *(loss.file for loss in self.losses)]
        described = {_without_suffix(name) for name in (*data, *unread)}
        return [label for stem, label in self._labels.items() if stem not in described]

    @functools.cached_property
    def _labels(self) -> dict[str, str]:
        return {_without_suffix(label): label for label in self.label}


def kind_of_content(head: bytes) -> Kind | None:
    """Return the kind of a text by its first bytes."""
    if _POINTS.search(head):
        return "history"
    if _SETS.search(head):
        return "parameters"
    if _STATUS.search(head):
        return "status"
    first = head.decode("utf-8", "replace").partition("\n")[0]
    names = {bare_name(heading) for heading in first.split(",")}
    if "x_coord" in names:
        return "coordinates"
    return "science" if len(names & BY_NAME.keys()) > 20 else None


def sort_products(source: Source) -> Products:
    """Return the IDA products among the files of a source; what they hold counts more than their names."""
    products = Products()
    for name in sorted(source.names, key=_order):
        if parse_picture(name):
            products.picture.append(name)
            continue
        if not name.lower().endswith((".txt", ".csv", ".xml")):
            products.others.append(name)
            continue
        named = kind_of_name(name)
        kind = named if named == "label" else kind_of_content(source.head(name, PEEK)) or named
        if named and kind != "label" and not source.size(name):
            products.losses.append(Loss(name, "the file is empty", count=0))
        elif kind in ("status", "history") and not _STATUS.search(source.buffer(name)):
            products.losses.append(Loss(name, "it holds neither ra_status nor sys_status", count=0))
        elif kind:
            getattr(products, kind).append(name)
        else:
            products.others.append(name)
    return products


def _order(name: str) -> tuple[int, int, str, str]:
    parsed = parse_name(name)
    return (parsed.start_sclk, parsed.end_sclk, parsed.time_tag, name) if parsed else (0, 0, "", name)


def _without_suffix(name: str) -> str:
    return name.rpartition(".")[0].lower()


def mentions(source: Source, names: Iterable[str], prefix: str) -> bool:
    """Tell whether any of the status texts has keys of a prefix (`ra_status`, `sys_status`)."""
    pattern = re.compile(rb"\b" + prefix.encode().replace(b"_", b"[ _]") + rb"\.", re.IGNORECASE)
    return any(pattern.search(source.buffer(name)) for name in names)
