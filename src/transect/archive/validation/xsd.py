"""XML Schema: a label against the schemas that it names, by libxml2, without a network.

Dictionaries import the core by its address, and libxml2 keeps the first schema of a namespace. So a wrapper
imports what the label names, the core first, and every address is resolved by the name of its file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transect.archive.schemas import Schemas
from transect.errors import TransectError
from transect.formats.pds4.label import NAMESPACE

from .problems import Problem, problem

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

    def problems(self, root: Any, unknown: frozenset[str]) -> list[Problem]:
        """Return what the schemas say against a label; not of namespaces whose schema is not here."""
        if self._schema.validate(root.getroottree()):
            return []
        found: dict[tuple[int, str], Problem] = {}
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
