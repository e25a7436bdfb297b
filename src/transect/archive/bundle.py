"""The content of an archive before it is written: bundle, collections, products."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, Protocol

from transect.errors import UsageError

from .identifiers import Lid, Lidvid, Vid, file_name_problem
from .labels.areas import CitationInformation, LabelReference, ProductContext
from .labels.objects import DataObject
from .standard import RECENT_STANDARD, Standard
from .xml import LabelElement

if TYPE_CHECKING:
    from .labels.products import LabelVersion, WrittenFile

Kind = Literal[
    "Product_Observational", "Product_Ancillary", "Product_Document", "Product_Browse", "Product_Context"
]
CollectionType = Literal[
    "Browse", "Calibration", "Context", "Data", "Document", "Geometry", "Miscellaneous", "XML Schema",
    "SPICE Kernel",
]  # fmt: skip
"""There is no type for ancillary data: products of that kind go to a collection of Data or Miscellaneous."""


_TIME = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d(:[0-6]\d(\.\d{1,6})?)?Z").fullmatch


class Content(Protocol):
    """The content of a file, created on writing."""

    def write(self, out: IO[bytes]) -> Sequence[DataObject]:
        """Write the bytes, and return the objects in them with offsets."""
        ...


@dataclass(frozen=True)
class ProductFile:
    """A file of a product."""

    name: str  # without a folder
    content: Content
    comment: str = ""
    created: str = ""  # when its bytes were made, in UTC; "": when the bundle was


@dataclass(frozen=True)
class ProductDocument:
    """Description of a document; each file of the product has its standard: `PDF/A`, `MPEG-4`, ..."""

    description: str
    standards: tuple[str, ...]
    date: str = ""
    authors: str = ""
    name: str = ""


@dataclass(frozen=True)
class BundleProduct:
    """One product: its files, and further fields of its label."""

    lid: Lid
    title: str
    files: tuple[ProductFile, ...] = ()
    kind: Kind = "Product_Observational"
    context: ProductContext = field(default_factory=ProductContext)
    references: tuple[LabelReference, ...] = ()
    citation: CitationInformation | None = None
    document: ProductDocument | None = None  # of a `Product_Document`
    # of a `Product_Context`: the `Instrument`, `Investigation`, ... that it describes.
    subject: LabelElement | None = None
    folder: str = ""  # below the folder of its collection; "" for that folder itself
    vid: Vid | None = None  # none: 1.0, or what the rules make of the version in the bundle that is there
    label: str = ""  # name of the label; "": that of the first file, with the suffix `.xml`
    # what writes the whole label instead, of the version and of the files as they were written
    render: Callable[[LabelVersion, Sequence[WrittenFile]], str] | None = None

    @property
    def label_name(self) -> str:
        """Name of the label."""
        return self.label or f"{_stem(self.files[0].name) if self.files else self.lid.name}.xml"


@dataclass(frozen=True)
class CopiedProduct:
    """A product of another archive, label and files as they are."""

    lidvid: Lidvid
    label: Path
    files: tuple[Path, ...] = ()
    folder: str = ""  # below the folder of its collection
    secondary: bool = False  # whether it is a secondary member of its collection, though its files are there

    @property
    def lid(self) -> Lid:
        """What it is called in all its versions."""
        return self.lidvid.lid


@dataclass(frozen=True)
class Collection:
    """Products of one type."""

    lid: Lid
    type: CollectionType
    title: str
    members: Sequence[
        BundleProduct | CopiedProduct
    ] = ()  # primary members: their identifiers begin with the collection's
    secondary: tuple[Lid | Lidvid, ...] = ()  # members of other collections that belong here, too
    description: str = ""
    context: ProductContext | None = None  # none: all that its products are of
    references: tuple[LabelReference, ...] = ()
    citation: CitationInformation | None = None
    vid: Vid | None = None
    as_found: bool = False  # whether it is called as somebody called it before there was a rule for that

    def __post_init__(self) -> None:
        if self.as_found:
            return
        first = self.type.split(maxsplit=1)[0].lower()
        if not self.lid.name.startswith((first, self.type.replace(" ", "_").lower())):
            hint = f"{self.lid.parent}:{first}_{self.lid.name}"
            what = f"the name of a collection of type {self.type} begins with {first!r}"
            raise UsageError(what, why=str(self.lid), hint=hint)
        for member in self.members:
            if not member.lid.is_member_of(self.lid):
                what = f"{member.lid} cannot be a member of {self.lid}"
                raise UsageError(what, why="the identifier of a member begins with that of its collection")


@dataclass(frozen=True)
class Bundle:
    """An archive."""

    lid: Lid
    title: str
    collections: tuple[Collection, ...]
    # when it is made, in UTC, `2024-05-01T12:00:00Z`: no clock is asked, so the same input gives the same
    # bytes
    created: str
    description: str = ""
    readme: str = ""
    # collections of other bundles that belong here, too, and their types
    secondary: tuple[tuple[Lid | Lidvid, CollectionType], ...] = ()
    context: ProductContext | None = None
    references: tuple[LabelReference, ...] = ()
    citation: CitationInformation | None = None
    standard: Standard = RECENT_STANDARD
    vid: Vid | None = None

    def __post_init__(self) -> None:
        if not _TIME(self.created):
            what = f"{self.created!r} is no time at which a bundle is made"
            raise UsageError(what, hint="2024-05-01T12:00:00Z, in UTC")
        if not self.collections:
            raise UsageError(f"{self.lid} has no collections")
        for each in self.collections:
            if each.lid.parent != self.lid and not each.as_found:
                what = f"{each.lid} is no collection of {self.lid}"
                raise UsageError(what, hint=f"{self.lid}:{each.lid.name}")
        _refuse_repeats(self)
        _refuse_names(self)


def products_of(bundle: Bundle) -> list[BundleProduct | CopiedProduct]:
    """Return all members of all collections."""
    return [member for each in bundle.collections for member in each.members]


def _refuse_repeats(bundle: Bundle) -> None:
    seen: set[Lid | Lidvid] = set()
    for each in (*bundle.collections, *products_of(bundle)):
        called = each.lidvid if isinstance(each, CopiedProduct) else each.lid
        if called in seen:
            raise UsageError(f"two products are called {called}", hint="each product has a name of its own")
        seen.add(called)


def _refuse_names(bundle: Bundle) -> None:
    """Reject names that no file may have, and files that would take the place of each other."""
    for collection in bundle.collections:
        taken: set[str] = set()
        for member in collection.members:
            for name in _file_names(member):
                if why := file_name_problem(name):
                    raise UsageError(f"{name!r} is no name for a file", where=str(member.lid), why=why)
                path = f"{member.folder}/{name}".lower()
                if path in taken:
                    raise UsageError(f"two files are called {name}", where=str(member.lid))
                taken.add(path)


def _file_names(member: BundleProduct | CopiedProduct) -> list[str]:
    if isinstance(member, CopiedProduct):
        return [member.label.name, *(file.name for file in member.files)]
    return [member.label_name, *(file.name for file in member.files)]


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name
