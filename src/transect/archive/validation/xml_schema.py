"""XML Schema and Schematron files that a label names, loaded once for many labels.

Dictionaries import the core by its address, and libxml2 keeps the first schema of a namespace. So a wrapper
imports what the label names, the core first, and every address is resolved by the name of its file.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from transect.archive.schemas import Schemas
from transect.errors import TransectError
from transect.formats.pds4.label import NAMESPACE

from .labels import SCHEMATRON, Label
from .problems import Severity, ValidationProblem, problem
from .schematron import Schematron

CORE = NAMESPACE[1:-1]
_EMPTY_CHOICE = re.compile(rb"<xs:choice[^>]*>\s*</xs:choice>")
_NAMESPACE = re.compile(r"\{[^}]*\}")
_ELEMENT = re.compile(r"Element '(?:\{([^}]*)\})?([^']*)'(?:, attribute '[^']*')?: (.*)", re.DOTALL).match


class Validator:
    """The schemas of one set of addresses, loaded once."""

    def __init__(self, locations: Sequence[tuple[str, Path]], schemas: Schemas) -> None:
        from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

        parser = etree.XMLParser(no_network=True, resolve_entities=False)
        parser.resolvers.add(_resolver(schemas, {path.name: path for _, path in locations}))
        ordered = sorted(locations, key=lambda pair: pair[0] != CORE)
        imports = "".join(
            f'<xs:import namespace="{uri}" schemaLocation="http://schemas/{path.name}"/>'
            for uri, path in ordered
        )
        wrapper = f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{imports}</xs:schema>'
        try:
            self._schema = etree.XMLSchema(etree.fromstring(wrapper.encode(), parser))
        except etree.XMLSchemaParseError as error:
            names = ", ".join(path.name for _, path in ordered)
            raise TransectError("the schemas cannot be loaded", where=names, why=str(error)) from error

    def problems(self, root: Any, unknown: frozenset[str]) -> list[ValidationProblem]:
        """Return what the schemas say against a label; not of namespaces whose schema is not here."""
        if self._schema.validate(root.getroottree()):
            return []
        found: dict[tuple[int, str], ValidationProblem] = {}
        for entry in self._schema.error_log:
            uri, element, text = _parts(entry.message)
            key = (entry.line, element)
            if uri not in unknown and key not in found:  # a value breaks a facet, then its type: one mistake
                found[key] = problem(
                    "label.schema", f"{element}: {text}" if element else text, line=entry.line
                )
        return list(found.values())


def _parts(message: str) -> tuple[str, str, str]:
    """Return namespace and name of the element that a message is about, and the rest in plain words."""
    found = _ELEMENT(message)
    uri, element, text = (found[1] or "", found[2], found[3]) if found else ("", "", message)
    return uri, element, _NAMESPACE.sub("", text).strip()


def _resolver(schemas: Schemas, given: dict[str, Path]) -> Any:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    class ByName(etree.Resolver):  # pyright: ignore[reportUntypedBaseClass]
        """Answers every address by the local file of that name."""

        def resolve(self, system_url: str, public_id: str, context: Any) -> Any:
            name = system_url.rpartition("/")[2]
            path = given.get(name) or schemas.find(name)
            if path is None:
                return self.resolve_empty(context)
            return self.resolve_string(_repair_schema(path.read_bytes()), context)

    return ByName()


def _repair_schema(content: bytes) -> bytes:
    r"""Return a schema as libxml2 takes it for what was meant.

    It refuses `\/` in a pattern, which others take for `/`; and nothing fulfils a choice without
    alternatives, which some dictionaries have, and which Xerces passes over.
    """
    return _EMPTY_CHOICE.sub(b"", content).replace(rb"\/", b"/")


MAX_CACHED_SCHEMAS = 64
"""Largest number of schema sets in the cache."""
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

    def problems(self, label: Label) -> Iterator[ValidationProblem]:
        """Yield problems of how a label names its schemas, and what these say of it."""
        yield from declarations(label)
        if self.schemas or self.own_xsd:
            yield from _or_error(self._by_xsd(label))
        if self.schematron and (self.schemas or self.own_sch):
            yield from _or_error(self._by_schematron(label))

    def _by_xsd(self, label: Label) -> Iterator[ValidationProblem]:
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

    def _unresolved(self, place: str, lost: str, kind: str, line: int) -> ValidationProblem:
        """Return the problem of a schema that does not exist; one that a catalog should know is an error."""
        if self.schemas.catalog is not None:
            text = f"{place} is not in the catalogs, or not where they say: {lost}"
            return problem(f"catalog.unresolvable_{kind}", text, line=line)
        text = f"{place} is not among the schemas: {lost}"
        return problem("label.unresolvable_resource", text, severity="info", line=line)

    def _by_schematron(self, label: Label) -> Iterator[ValidationProblem]:
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


def _or_error(found: Iterator[ValidationProblem]) -> Iterator[ValidationProblem]:
    """Yield problems; schemas that cannot be used are one, too, and do not end the run."""
    try:
        yield from found
    except TransectError as error:
        text = f"{error.what} ({error.where}): {error.why}"
        yield problem("label.unresolvable_resource", text, severity="error")


@lru_cache(MAX_CACHED_SCHEMAS)
def _validator(known: tuple[tuple[str, Path], ...], folders: tuple[Path, ...]) -> Validator:
    return Validator(known, Schemas(folders))


@lru_cache(MAX_CACHED_SCHEMAS)
def _schematron(paths: tuple[Path, ...]) -> Schematron:
    return Schematron(paths)


def target_namespace(path: Path) -> str:
    """Return the namespace that an XSD describes."""
    from transect.base.xml import load_xml

    return load_xml(path.read_bytes(), path.name).get("targetNamespace", "")


def declarations(label: Label) -> Iterator[ValidationProblem]:
    """Yield problems of the `xml-model` instructions and `xsi:schemaLocation` of a label."""
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


def _find_unpaired(label: Label, line: int) -> Iterator[ValidationProblem]:
    """Yield a warning if the XSD and Schematron files of a label have different versions."""
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
