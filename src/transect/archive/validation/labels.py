"""Parsed labels: the tree with its lines, references, and valid names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from transect.archive.identifiers import MAX_PART_CHARACTERS, is_reserved
from transect.base.xml import load_xml, local_name
from transect.formats.pds4.label import NAMESPACE

from .problems import ValidationProblem, problem

XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
SCHEMATRON = "http://purl.oclc.org/dsdl/schematron"
EXTENSIONS = (".xml", ".lblx")
_PSEUDO = re.compile(r"""(\w+)\s*=\s*("[^"]*"|'[^']*')""")


@dataclass(frozen=True)
class SchematronModel:
    """An `xml-model` instruction: the Schematron file and its kind."""

    href: str
    kind: str
    line: int


@dataclass(frozen=True)
class IdentifierReference:
    """An identifier that a label names, and why."""

    target: str
    type: str
    line: int
    element: Any

    @property
    def lid(self) -> str:
        """The identifier without a version."""
        return self.target.partition("::")[0]


@dataclass(frozen=True)
class FileEntry:
    """A file that a label names."""

    name: str  # as it is written, with its folder below that of the label
    area: Any  # the file area, or the `Document_File` itself
    element: Any  # `File`, or `Document_File`

    @property
    def line(self) -> int:
        """Where it is named."""
        return self.element.sourceline or 0

    @property
    def safe(self) -> bool:
        """Whether it stays below the folder of the label."""
        path = PurePosixPath(self.name)
        return bool(path.name) and not path.is_absolute() and ".." not in path.parts and "\\" not in self.name


class Label:
    """A label that could be parsed.

    Parameters
    ----------
    path : Path
    name : str
        From the folder that is validated.
    content : bytes
    """

    def __init__(self, path: Path, name: str, content: bytes) -> None:
        self.path, self.name, self.content = path, name, content
        self.root = load_xml(content, name)

    @property
    def kind(self) -> str:
        """`Product_Observational`, ..."""
        return local_name(self.root)

    @property
    def is_label(self) -> bool:
        """Whether its root is a product of PDS4."""
        root = str(self.root.tag)
        return root.startswith(NAMESPACE) and self.kind.startswith(("Product_", "Ingest_LDD"))

    @cached_property
    def present(self) -> frozenset[str]:
        """Names of all elements."""
        tags = {each.tag for each in self.root.iter() if isinstance(each.tag, str)}
        return frozenset(tag.rpartition("}")[2] for tag in tags)

    @property
    def text(self) -> str:
        """The label as text that says nothing of its encoding, unless that is UTF-8."""
        if (self.root.getroottree().docinfo.encoding or "UTF-8").upper() in ("UTF-8", "US-ASCII", "ASCII"):
            return self.content.decode("utf-8-sig", "replace")
        from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

        return etree.tostring(self.root, encoding="unicode")

    @cached_property
    def lid(self) -> str:
        """The logical identifier, or ""."""
        return text_of(self.area, "logical_identifier")

    @cached_property
    def vid(self) -> str:
        """The version, or ""."""
        return text_of(self.area, "version_id")

    @property
    def lidvid(self) -> str:
        """Both, joined by two colons."""
        return f"{self.lid}::{self.vid}"

    @property
    def area(self) -> Any:
        """The `Identification_Area`, or None."""
        return self.root.find(f"{NAMESPACE}Identification_Area")

    @cached_property
    def schema_locations(self) -> list[tuple[str, str]]:
        """Namespaces and where their XSD is, as `xsi:schemaLocation` says."""
        words = (self.root.get(f"{XSI}schemaLocation") or "").split()
        return list(zip(words[::2], words[1::2], strict=False))

    @cached_property
    def models(self) -> list[SchematronModel]:
        """The Schematron files that the label names."""
        found: list[SchematronModel] = []
        before = self.root.getprevious()
        while before is not None:
            if getattr(before, "target", "") == "xml-model":
                said = {key: value[1:-1] for key, value in _PSEUDO.findall(before.text or "")}
                found.insert(
                    0,
                    SchematronModel(
                        said.get("href", ""), said.get("schematypens", ""), before.sourceline or 0
                    ),
                )
            before = before.getprevious()
        return found

    @cached_property
    def files(self) -> list[FileEntry]:
        """The files that it describes."""
        found: list[FileEntry] = []
        for element in self.root.iter(f"{NAMESPACE}File", f"{NAMESPACE}Document_File"):
            document = local_name(element) == "Document_File"
            area = element if document else element.getparent()
            if document or local_name(area).startswith("File_Area"):
                folder = text_of(element, "directory_path_name").strip("/")
                name = text_of(element, "file_name")
                found.append(FileEntry(f"{folder}/{name}" if folder else name, area, element))
        return found

    @cached_property
    def references(self) -> list[IdentifierReference]:
        """Every identifier in an `Internal_Reference`, in any namespace of the label."""
        found: list[IdentifierReference] = []
        for element in self.root.iter(f"{NAMESPACE}Internal_Reference"):
            type_ = text_of(element, "reference_type")
            for tag in ("lid_reference", "lidvid_reference"):
                for each in element.iterfind(NAMESPACE + tag):
                    found.append(
                        IdentifierReference((each.text or "").strip(), type_, each.sourceline or 0, element)
                    )
        return found

    def at(self, path: str) -> int:
        """Return the line of the element that an XPath by `path()` means: `/Q{uri}name[1]/...`."""
        element = self.root
        for uri, name, number in re.findall(r"/(?:Q\{([^}]*)\})?([\w.-]+)\[(\d+)\]", path)[1:]:
            tag = f"{{{uri}}}{name}" if uri else name
            children = element.findall(tag)
            if int(number) > len(children):
                break
            element = children[int(number) - 1]
        return element.sourceline or 0


def text_of(element: Any, tag: str) -> str:
    """Return the text of a child, without blanks around it; "" if there is none."""
    found = None if element is None else element.find(NAMESPACE + tag)
    return found.text.strip() if found is not None and found.text else ""


def child_line(element: Any, tag: str) -> int:
    """Return the line of a child, else that of the element itself."""
    found = element.find(NAMESPACE + tag)
    return (element if found is None else found).sourceline or 0


def children(element: Any) -> Iterator[tuple[str, Any]]:
    """Yield the children of an element by their names."""
    for each in element:
        tag = each.tag
        if isinstance(tag, str):
            yield tag[len(NAMESPACE) :] if tag.startswith(NAMESPACE) else tag.rpartition("}")[2], each


_LEGAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*").fullmatch
COLLECTIONS = frozenset(
    {
        "browse",
        "calibration",
        "context",
        "data",
        "document",
        "geometry",
        "miscellaneous",
        "spice_kernels",
        "xml_schema",
    }
)


def name_problems(name: str, folder: bool = False) -> Iterator[ValidationProblem]:
    """Yield problems of one name; of several things the first."""
    what = "directory" if folder else "file"
    if len(name) > MAX_PART_CHARACTERS:
        text = f"the name has {len(name)} letters; {MAX_PART_CHARACTERS} are allowed"
        yield problem(f"{what}.name_too_long", text)
    elif not _LEGAL(name) or (folder and "." in name):
        allowed = "letters, digits, _ and -" if folder else "letters, digits, _, . and -"
        text = f"{name!r} has other signs than {allowed}, or does not begin with a letter or digit"
        yield problem(f"{what}.name_has_invalid_characters", text)
    elif not folder and name.lower() == "a.out":
        yield problem("file.unallowed_name", f"no file may be called {name}")
    elif is_reserved(name):
        kind = "directory.unallowed_name" if folder else "file.unallowed_base_name"
        yield problem(kind, f"{name.partition('.')[0]} is a reserved name")


def tree_problems(files: Iterable[str], folders: Iterable[str]) -> Iterator[ValidationProblem]:
    """Yield problems of the names in a tree, paths from its root."""
    seen: dict[str, str] = {}
    for path, folder in [*((each, False) for each in files), *((each, True) for each in folders)]:
        name = PurePosixPath(path).name
        for each in name_problems(name, folder):
            yield problem(each.kind, each.text, file=path)
        other = seen.setdefault(path.lower(), path)
        if other != path:
            text = f"its name differs from {PurePosixPath(other).name} in upper and lower case only"
            yield problem("validation.file_naming_problem", text, file=path)


def folder_problems(folders: Iterable[str], depth: int) -> Iterator[ValidationProblem]:
    """Yield a warning for each folder inside a collection that has the name of a collection.

    Parameters
    ----------
    depth : int
        Of folders that may have such a name: 1 in a bundle, 0 in a collection.
    """
    for path in folders:
        parts = PurePosixPath(path).parts
        if len(parts) > depth and parts[-1].lower() in COLLECTIONS:
            text = f"{parts[-1]} is the name of a collection, which stands in the bundle's own folder"
            yield problem("sub_directory.unallowed_name", text, file=path)
