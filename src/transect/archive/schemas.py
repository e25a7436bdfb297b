"""Schemas: XSD and Schematron files of the PDS4 information model, which are not part of transect.

They are found by name in the folders that are given, in those of `TRANSECT_PDS4_SCHEMAS` and in the user's
data folder, which `fetch` fills from the official site. Files were released again under the same name, so
that those that are fetched are pinned by sha256 (`schemas.sha256`).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from transect.base.files import write_bytes
from transect.base.xml import load_xml, local_name
from transect.errors import ParseError, TransectError

MAX_DEPTH = 16
"""Largest nesting of catalogs."""
_DOCTYPE = re.compile(rb"<!DOCTYPE\s+catalog\b[^\[<>]*>")
"""Names the grammar of catalogs, and defines no entities."""
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_EXACT = {"uri": "name", "system": "systemId", "public": "publicId"}
_PREFIX = {"rewriteURI": "uriStartString", "rewriteSystem": "systemIdStartString"}
_SUFFIX = {"uriSuffix": "uriSuffix", "systemSuffix": "systemIdSuffix"}


@dataclass
class Catalog:
    """Entries of catalogs: the first of several equal ones, and the longest prefix or suffix, applies."""

    # from an address, or its prefix or suffix, to the location of the file
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


VARIABLE, SITE_VARIABLE = "TRANSECT_PDS4_SCHEMAS", "TRANSECT_PDS4_SITE"
SITE = "https://pds.nasa.gov"
MAX_BYTES = 64 << 20
CHECKSUM_FILE = Path(__file__).parent / "schemas.sha256"
DEFAULT = ("PDS4_PDS_1B10", "PDS4_MSN_1B00_1100", "PDS4_PDS_1O00", "PDS4_DISP_1O00_1510",
           "PDS4_GEOM_1O00_19B0", "PDS4_MSN_1O00_1310", "PDS4_MSN_SURFACE_1O00_1300",
           "PDS4_PROC_1O00_1500")  # fmt: skip
"""The schemas of the InSight arm archive, and a recent set."""


class PinnedSchema(NamedTuple):
    """A file of the official site: its path and checksum."""

    path: str
    sha256: str

    @property
    def name(self) -> str:
        """The file's name, by which labels are matched."""
        return PurePosixPath(self.path).name


class Schemas:
    """Schema files in some folders; the first folder that has a name wins.

    Parameters
    ----------
    folders : iterable of Path
    catalogs : iterable of Path
        XML catalogs. Where there are any, only schemas that they know are found: where they say, else by
        the name that they say in the folders.
    """

    def __init__(self, folders: Iterable[Path], catalogs: Iterable[Path] = ()) -> None:
        self.folders = tuple(folders)
        paths = tuple(catalogs)
        self.catalog = Catalog.of(paths) if paths else None

    @cached_property
    def _index(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for folder in self.folders:
            for path in sorted((*folder.rglob("*.xsd"), *folder.rglob("*.sch"))):
                found.setdefault(path.name, path)
        return found

    @property
    def names(self) -> list[str]:
        """Names of all files, in order."""
        return sorted(self._index)

    def __bool__(self) -> bool:
        return bool(self._index) or self.catalog is not None

    def find(self, location: str, beside: Path | None = None, namespace: str = "") -> Path | None:
        """Return the file of the name that a location ends in; beside the label if it names no site.

        A catalog may know it by its namespace, too.
        """
        if self.catalog is not None:
            resolved = self.catalog.resolve(location.strip(), *filter(None, [namespace]))
            if resolved is None:
                return None
            path = local_path(resolved)
            if path is not None and path.is_file():
                return path
            location = resolved
        name = PurePosixPath(location.strip()).name
        found = self._index.get(name)
        if found is None and beside is not None and "://" not in location and (beside / name).is_file():
            return beside / name
        return found


def data_folder() -> Path:
    """Return the user's own folder of schemas, below `$XDG_DATA_HOME` or `~/.local/share`."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "transect" / "pds4"


def find_schemas(given: Iterable[Path] = (), catalogs: Iterable[Path] = ()) -> Schemas:
    """Return the schemas of the given folders, else of the environment, else of the user's data folder.

    Raises
    ------
    TransectError
        If a folder that is named is none.
    """
    named = tuple(given) or tuple(Path(p) for p in os.environ.get(VARIABLE, "").split(os.pathsep) if p)
    for folder in named:
        if not folder.is_dir():
            raise TransectError(
                "the folder of schemas is none", where=str(folder), hint=f"check --schemas and {VARIABLE}"
            )
    return Schemas(named or (data_folder(),), catalogs)


def pins(names: Iterable[str] = ()) -> list[PinnedSchema]:
    """Return the pinned files whose names begin with one of these; all without any."""
    wanted = tuple(names)
    lines = (line.split() for line in CHECKSUM_FILE.read_text().splitlines())
    found = [PinnedSchema(path, digest) for digest, path in lines]
    return [pin for pin in found if not wanted or pin.name.rpartition(".")[0] in wanted]


def fetch(
    names: Iterable[str], folder: Path | None = None, site: str | None = None
) -> Iterator[tuple[PinnedSchema, bool]]:
    """Fetch pinned files that are not there yet; gives each with whether it was fetched.

    Raises
    ------
    TransectError
        If there is no network, or a file is not the one that is pinned.
    """
    target = folder or data_folder()
    for pin in pins(names):
        path = target / pin.name
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == pin.sha256:
            yield pin, False
            continue
        write_bytes(path, _download(f"{site or os.environ.get(SITE_VARIABLE) or SITE}/{pin.path}", pin))
        yield pin, True


def _download(url: str, pin: PinnedSchema) -> bytes:
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=30) as answer:
            content = answer.read(MAX_BYTES + 1)
    except HTTPError as error:
        error.close()
        raise TransectError(
            f"{pin.name} cannot be fetched", where=url, why=f"the site answers {error.code} {error.reason}"
        ) from error
    except (OSError, HTTPException) as error:
        raise TransectError(
            "the schemas cannot be fetched: there is no network, or the site does not answer",
            where=url, why=str(error), hint="copy .xsd and .sch files and name their folder by --schemas",
        ) from error  # fmt: skip
    if hashlib.sha256(content).hexdigest() != pin.sha256:
        raise TransectError(
            f"{pin.name} is not the file that is pinned", where=url,
            why="its sha256 differs: it was released again, or changed on the way",
            hint="download it yourself if you trust it, and name its folder by --schemas",
        )  # fmt: skip
    return content
