"""A label against its XSD and Schematron files, which are loaded and compiled once for many labels."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from transect.archive.schemas import Schemas
from transect.errors import TransectError

from .labels import SCHEMATRON, Label
from .problems import Problem, Severity, problem
from .schematron import Schematron
from .xsd import CORE, Validator

MOST_KEPT = 64
"""Sets of schemas that stay loaded and compiled."""
ROLES: dict[str, Severity] = {"warn": "warning", "warning": "warning", "info": "info", "information": "info"}


@dataclass
class Checker:
    """What labels are held against."""

    schemas: Schemas
    # used instead of what the labels name
    own_xsd: Sequence[Path] = ()
    own_sch: Sequence[Path] = ()
    # whether Saxon is installed
    schematron: bool = field(default_factory=lambda: importlib.util.find_spec("saxonche") is not None)

    def problems(self, label: Label) -> Iterator[Problem]:
        """Give what is wrong with how a label names its schemas, and what these say of it."""
        yield from declarations(label)
        if self.schemas or self.own_xsd:
            yield from _or_error(self._by_xsd(label))
        if self.schematron and (self.schemas or self.own_sch):
            yield from _or_error(self._by_schematron(label))

    def _by_xsd(self, label: Label) -> Iterator[Problem]:
        named = label.schema_locations
        own = {target_namespace(path): path for path in self.own_xsd}
        found = [
            (uri, own.get(uri) or self.schemas.find(place, label.path.parent, uri)) for uri, place in named
        ]
        found += [(uri, path) for uri, path in own.items() if uri not in dict(found)]
        unknown = frozenset(uri for uri, path in found if path is None)
        for (uri, place), (_, path) in zip(named, found, strict=False):
            if path is None:
                yield self._unresolved(place, f"{uri} was not checked", "schema", label.root.sourceline or 0)
        known = tuple({uri: (uri, path) for uri, path in reversed(found) if path is not None}.values())
        if any(uri == CORE for uri, _ in known):
            yield from _validator(known, self.schemas.folders).problems(label.root, unknown)

    def _unresolved(self, place: str, lost: str, kind: str, line: int) -> Problem:
        """Return the problem of a schema that is not there; one that a catalog should know is an error."""
        if self.schemas.catalog is not None:
            text = f"{place} is not in the catalogs, or not where they say: {lost}"
            return problem(f"catalog.unresolvable_{kind}", text, line=line)
        text = f"{place} is not among the schemas: {lost}"
        return problem("label.unresolvable_resource", text, severity="info", line=line)

    def _by_schematron(self, label: Label) -> Iterator[Problem]:
        paths = list(self.own_sch)
        for model in label.models if not paths else ():
            path = self.schemas.find(model.href, label.path.parent)
            if path is not None:
                paths.append(path)
            elif model.kind == SCHEMATRON or not model.kind:
                yield self._unresolved(model.href, "its rules were not checked", "schematron", model.line)
        key = tuple(dict.fromkeys(path for path in paths if path.suffix == ".sch"))
        if not key:
            return
        for each in _schematron(key).failures(label.text, label.present):
            severity = ROLES.get(each.role.lower(), "error")
            yield problem("label.schematron", each.text, severity=severity, line=label.at(each.path))


def _or_error(found: Iterator[Problem]) -> Iterator[Problem]:
    """Give problems; schemas that cannot be used are one, too, and do not end the run."""
    try:
        yield from found
    except TransectError as error:
        text = f"{error.what} ({error.where}): {error.why}"
        yield problem("label.unresolvable_resource", text, severity="error")


@lru_cache(MOST_KEPT)
def _validator(known: tuple[tuple[str, Path], ...], folders: tuple[Path, ...]) -> Validator:
    return Validator(known, Schemas(folders))


@lru_cache(MOST_KEPT)
def _schematron(paths: tuple[Path, ...]) -> Schematron:
    return Schematron(paths)


def target_namespace(path: Path) -> str:
    """Return the namespace that an XSD describes."""
    from transect.base.xml import load_xml

    return load_xml(path.read_bytes(), path.name).get("targetNamespace", "")


def declarations(label: Label) -> Iterator[Problem]:
    """Give what is wrong with the `xml-model` instructions and `xsi:schemaLocation` of a label."""
    line = label.root.sourceline or 0
    if not label.schema_locations:
        yield problem("label.missing_schema", "the label names no schema (xsi:schemaLocation)", line=line)
    if not label.models:
        yield problem("label.missing_schematron_spec", "the label names no Schematron (xml-model)", line=line)
    for model in label.models:
        if not model.kind:
            yield problem("label.missing_schematypens", f"{model.href} has no schematypens", line=model.line)
        elif model.kind != SCHEMATRON:
            yield problem(
                "label.bad_schematypens",
                f"{model.href}: {model.kind!r} is not {SCHEMATRON!r}",
                line=model.line,
            )
    if label.schema_locations and label.models:
        yield from _find_unpaired(label, line)


def _find_unpaired(label: Label, line: int) -> Iterator[Problem]:
    """Give a warning if XSD and Schematron files of a label are not the same versions of the same schemas."""
    xsd = {_stem(place) for _, place in label.schema_locations}
    sch = {_stem(model.href) for model in label.models}
    if alone := sorted(xsd ^ sch):
        names = ", ".join(sorted({each.rpartition("/")[2] for each in alone}))
        yield problem(
            "label.schema", severity="warning", line=line,
            text=f"the addresses of .xsd and .sch should be the same but for that; they are not of {names}",
        )  # fmt: skip


def _stem(place: str) -> str:
    return place.partition("://")[2].rpartition(".")[0] or place.rpartition(".")[0]
