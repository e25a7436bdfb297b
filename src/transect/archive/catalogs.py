"""OASIS XML catalogs: files that say where schemas are, which labels name by their addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from transect.base.xml import load_xml, local_name
from transect.errors import ParseError

MAX_DEPTH = 16
"""Catalogs that may name each other in a row."""
_DOCTYPE = re.compile(rb"<!DOCTYPE\s+catalog\b[^\[<>]*>")
"""Names the grammar of catalogs, and defines no entities."""
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_EXACT = {"uri": "name", "system": "systemId", "public": "publicId"}
_PREFIX = {"rewriteURI": "uriStartString", "rewriteSystem": "systemIdStartString"}
_SUFFIX = {"uriSuffix": "uriSuffix", "systemSuffix": "systemIdSuffix"}


@dataclass
class Catalog:
    """What catalogs say, the first entry of several counts; of prefixes and suffixes the longest."""

    # from an address, or its beginning or end, to where it stands
    exact: dict[str, str] = field(default_factory=dict[str, str])
    prefixes: dict[str, str] = field(default_factory=dict[str, str])
    suffixes: dict[str, str] = field(default_factory=dict[str, str])

    @staticmethod
    def of(paths: Iterable[Path]) -> Catalog:
        """Read catalogs, and those that they name.

        Raises
        ------
        ParseError
            If a file is no catalog.
        """
        catalog = Catalog()
        for path in paths:
            catalog._read(path.resolve(), MAX_DEPTH)
        return catalog

    def resolve(self, *addresses: str) -> str | None:
        """Return where the first of some addresses stands that a catalog knows."""
        for address in addresses:
            if address in self.exact:
                return self.exact[address]
            for start in sorted(self.prefixes, key=len, reverse=True):
                if address.startswith(start):
                    return self.prefixes[start] + address[len(start) :]
            for end in sorted(self.suffixes, key=len, reverse=True):
                if address.endswith(end):
                    return self.suffixes[end]
        return None

    def _read(self, path: Path, depth: int) -> None:
        root = load_xml(_DOCTYPE.sub(b"", path.read_bytes(), 1), path.name)
        if local_name(root) != "catalog":
            raise ParseError(f"{path.name} is no XML catalog", where=str(path), why=f"it is a {root.tag}")
        for element, base in _entries(root, path.as_uri()):
            for names, attribute, known in (
                (_EXACT, "uri", self.exact),
                (_PREFIX, "rewritePrefix", self.prefixes),
                (_SUFFIX, "uri", self.suffixes),
            ):
                key = names.get(local_name(element))
                if key and (address := element.get(key)):  # an entry without one would be of everything
                    known.setdefault(address, urljoin(base, element.get(attribute, "")))
            if local_name(element) == "nextCatalog" and depth:
                following = local_path(urljoin(base, element.get("catalog", "")))
                if following is not None and following.is_file():
                    self._read(following, depth - 1)


def _entries(element: Any, base: str) -> Iterator[tuple[Any, str]]:
    """Yield entries of a catalog and of its groups, each with the address that relative ones count from."""
    base = urljoin(base, element.get(_BASE, ""))
    for child in element:
        if not isinstance(child.tag, str):
            continue  # a comment
        if local_name(child) == "group":
            yield from _entries(child, base)
        else:
            yield child, urljoin(base, child.get(_BASE, ""))


def local_path(address: str) -> Path | None:
    """Return the path of a `file:` address; None for other ones."""
    parts = urlsplit(address)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None
