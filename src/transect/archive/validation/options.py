"""What is validated, and against what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from .labels import EXTENSIONS

Rule = Literal["label", "folder", "collection", "bundle"]


@dataclass(frozen=True)
class Options:
    """How strictly, and by which files, labels are judged."""

    rule: Rule | None = None  # what each path is; None: a file is a label, a folder a folder of labels
    schemas: tuple[Path, ...] = ()  # folders of .xsd and .sch files
    # files that are used instead of those that the labels name
    xsd: tuple[Path, ...] = ()
    sch: tuple[Path, ...] = ()
    content: bool = True  # whether data files are looked into
    context: bool = True  # whether context products must be registered
    mismatches: bool = True  # whether their names and types are compared
    # whether a collection must name the context products that its products name; NASA's tool once asked so
    context_references: bool = False
    products: bool = True  # whether labels are checked one by one, besides how they fit together
    formats: bool = True  # whether values are compared with `field_format` and `validation_format`
    strict_fields: bool = False  # whether anything but blanks between fixed fields is told
    strict_members: bool = True  # whether a member that is not there is an error; else a warning
    complete: bool = False  # whether each byte of a data file must be described
    unlabelled: bool = True  # whether files that no label names are told
    recurse: bool = True  # whether folders inside a folder are looked into
    extensions: tuple[str, ...] = EXTENSIONS  # of labels
    context_file: Path | None = None  # NASA's list; None: the one beside the schemas
    # more lists of the same form, of products that are not registered yet
    added_context: tuple[Path, ...] = ()
    checksums: Path | None = None  # a manifest of MD5 sums that the labels and their files must have
    against: Path | None = None  # an older state of the same archive
    # folders whose products count as members that are there; they are not judged
    alternates: tuple[Path, ...] = ()
    catalogs: tuple[Path, ...] = ()  # OASIS XML catalogs that say where schemas are

    def reading_only(self) -> Options:
        """Return options by which labels are read, and nothing is judged."""
        return replace(self, rule="folder", products=False, against=None, checksums=None, alternates=())
