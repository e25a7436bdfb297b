"""What is validated, and against what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from .labels import EXTENSIONS

Rule = Literal["label", "folder", "collection", "bundle"]


@dataclass(frozen=True)
class Options:
    """How strictly, and by which files, labels are judged.

    Attributes
    ----------
    rule : str or None
        What each path is; None: a file is a label, a folder a folder of labels.
    schemas : tuple of Path
        Folders of .xsd and .sch files.
    xsd, sch : tuple of Path
        Files that are used instead of those that the labels name.
    content : bool
        Whether data files are looked into.
    context : bool
        Whether context products must be registered.
    mismatches : bool
        Whether their names and types are compared.
    context_references : bool
        Whether a collection must name the context products that its products name; NASA's tool once asked so.
    products : bool
        Whether labels are checked one by one, besides how they fit together.
    formats : bool
        Whether values are compared with `field_format` and `validation_format`.
    strict_fields : bool
        Whether anything but blanks between fixed fields is told.
    strict_members : bool
        Whether a member that is not there is an error; else a warning.
    complete : bool
        Whether each byte of a data file must be described.
    unlabelled : bool
        Whether files that no label names are told.
    recurse : bool
        Whether folders inside a folder are looked into.
    extensions : tuple of str
        Of labels.
    context_file : Path or None
        NASA's list; None: the one beside the schemas.
    added_context : tuple of Path
        More lists of the same form, of products that are not registered yet.
    checksums : Path or None
        A manifest of MD5 sums that the labels and their files must have.
    against : Path or None
        An older state of the same archive.
    alternates : tuple of Path
        Folders whose products count as members that are there; they are not judged.
    catalogs : tuple of Path
        OASIS XML catalogs that say where schemas are.
    """

    rule: Rule | None = None
    schemas: tuple[Path, ...] = ()
    xsd: tuple[Path, ...] = ()
    sch: tuple[Path, ...] = ()
    content: bool = True
    context: bool = True
    mismatches: bool = True
    context_references: bool = False
    products: bool = True
    formats: bool = True
    strict_fields: bool = False
    strict_members: bool = True
    complete: bool = False
    unlabelled: bool = True
    recurse: bool = True
    extensions: tuple[str, ...] = EXTENSIONS
    context_file: Path | None = None
    added_context: tuple[Path, ...] = ()
    checksums: Path | None = None
    against: Path | None = None
    alternates: tuple[Path, ...] = ()
    catalogs: tuple[Path, ...] = ()

    def reading_only(self) -> Options:
        """Return options by which labels are read, and nothing is judged."""
        return replace(self, rule="folder", products=False, against=None, checksums=None, alternates=())
