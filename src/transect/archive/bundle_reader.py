"""Reading of bundles: their products from the labels, and their citation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

from transect.base.xml import load_xml
from transect.errors import ParseError, UsageError
from transect.formats.pds4 import LABELS, NAMESPACE
from transect.formats.pds4.label import NAMESPACE as PDS
from transect.recording.citation import Author, Citation, Related

from .bundle import Bundle, Collection, CollectionType, CopiedProduct
from .identifiers import Lid, Lidvid, Vid
from .labels.areas import VersionChange
from .standard import RECENT_STANDARD, Standard

_MAX_HEADER_BYTES = 4096


@dataclass(frozen=True)
class ExistingProduct:
    """An existing product."""

    lidvid: Lidvid
    title: str
    kind: str  # `Product_Observational`, ...
    label: Path
    # by name beside the label, md5 ("" where the label has none) and time of creation of each
    files: Mapping[str, tuple[str, str]]
    history: tuple[VersionChange, ...] = ()  # the newest first

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, where they are."""
        return tuple(self.label.parent / name for name in self.files)


def find_labels(folder: Path) -> list[Path]:
    """Return the labels in a folder and below, in the order of their names."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in LABELS and path.is_file())
    return sorted(path for path in found if NAMESPACE in _head(path))


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_MAX_HEADER_BYTES)


def find_versions(folder: Path) -> dict[Lidvid, ExistingProduct]:
    """Return all products in a folder, in all their versions."""
    found = (read_existing(label) for label in (find_labels(folder) if folder.is_dir() else ()))
    return {each.lidvid: each for each in found}


def find_products(folder: Path) -> dict[Lid, ExistingProduct]:
    """Return the newest version of every product in a folder, by what it is called."""
    return {lidvid.lid: each for lidvid, each in sorted(find_versions(folder).items())}


def read_existing(label: Path) -> ExistingProduct:
    """Return the product of a label.

    Raises
    ------
    ParseError
        That names the label, if it does not identify one.
    """
    root = load_xml(label.read_bytes(), str(label))
    area = root.find(f"{PDS}Identification_Area")
    try:
        lidvid = Lid(child_text(area, "logical_identifier")).at(_vid(child_text(area, "version_id")))
    except UsageError as error:
        what = f"{label.name} does not identify a product"
        raise ParseError(what, where=f"{label}:1", why=error.what) from error
    files = dict(_files(root, label))
    kind = str(root.tag).removeprefix(PDS)
    return ExistingProduct(lidvid, child_text(area, "title"), kind, label, files, tuple(_history(area)))


def _vid(text: str) -> Vid:
    """Return a version; labels of all times also say `1`."""
    return Vid.parse(text if "." in text else f"{text}.0")


def child_text(element: Any, tag: str) -> str:
    """Return the text of a part of an element, "" if there is none."""
    found = None if element is None else element.find(PDS + tag)
    return found.text.strip() if found is not None and found.text else ""


def _files(root: Any, label: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    for element in root.iter(f"{PDS}File", f"{PDS}Document_File"):
        path = PurePosixPath(child_text(element, "directory_path_name")) / child_text(element, "file_name")
        if not path.name or path.is_absolute() or ".." in path.parts:
            why = f"the file name {str(path)!r} leads elsewhere"
            raise ParseError(f"{label.name} names no file", where=f"{label}:{element.sourceline}", why=why)
        md5, created = (child_text(element, tag) for tag in ("md5_checksum", "creation_date_time"))
        yield str(path), (md5.lower(), created)


def _history(area: Any) -> Iterator[VersionChange]:
    for each in area.iter(f"{PDS}Modification_Detail"):
        date, vid, about = (
            child_text(each, tag) for tag in ("modification_date", "version_id", "description")
        )
        yield VersionChange(date, _vid(vid), about)


def find_bundle(found: Mapping[Lidvid, ExistingProduct], folder: Path) -> ExistingProduct:
    """Return the bundle among the products of a folder: the newest of those whose label is highest up."""
    bundles = [each for each in found.values() if each.kind == "Product_Bundle"]
    if not bundles:
        raise ParseError(f"{folder} is no bundle", where=str(folder), why="no label of a Product_Bundle")
    highest = min(len(each.label.parts) for each in bundles)
    top = [each for each in bundles if len(each.label.parts) == highest]
    return max(top, key=lambda each: each.lidvid.vid)


def open_bundle(path: Path) -> tuple[ExistingProduct, dict[Lidvid, ExistingProduct]]:
    """Return a bundle by its folder, or by its label if a folder has several; and all products there."""
    if path.is_dir():
        found = find_versions(path)
        return find_bundle(found, path), found
    bundle = read_existing(path)
    if bundle.kind != "Product_Bundle":
        raise ParseError(f"{path} is no bundle", where=str(path), why=f"it is the label of a {bundle.kind}")
    return bundle, find_versions(path.parent)


# A bundle, to build again


def read_bundle(folder: Path, created: str, standard: Standard = RECENT_STANDARD) -> Bundle:
    """Return an existing bundle in the form that can be built: the same products, members and versions.

    Products keep their labels and files; collections and the bundle are described again.

    Raises
    ------
    ParseError
        If there is no bundle, or its collections have no inventories.
    """
    found = find_versions(folder)
    bundle = find_bundle(found, folder)
    root = load_xml(bundle.label.read_bytes(), str(bundle.label))
    collections: list[Collection] = []
    others: list[tuple[Lid | Lidvid, CollectionType]] = []
    for entry in root.iterfind(f"{PDS}Bundle_Member_Entry"):
        to = identifier_of(child_text(entry, "lidvid_reference") or child_text(entry, "lid_reference"))
        here = find_product(to, found)
        if here is not None and child_text(entry, "member_status").lower() == "primary":
            collections.append(_collection(here, found))
        else:
            others.append((to, _type_of(child_text(entry, "reference_type"))))
    readme = next((path for path in bundle.paths if path.is_file()), None)
    return Bundle(
        bundle.lidvid.lid, bundle.title, tuple(collections), created,
        child_text(root.find(f"{PDS}Bundle"), "description"),
        readme.read_text("utf-8", "replace") if readme else "",
        tuple(others), standard=standard, vid=bundle.lidvid.vid,
    )  # fmt: skip


def identifier_of(text: str) -> Lid | Lidvid:
    """Return what a label or an inventory refers to, in any version or in one."""
    return Lidvid.parse(text) if "::" in text else Lid(text)


def find_product(to: Lid | Lidvid, found: Mapping[Lidvid, ExistingProduct]) -> ExistingProduct | None:
    """Return the version that is meant, or the newest."""
    if isinstance(to, Lidvid):
        return found.get(to)
    newest = max((each for each in found if each.lid == to), default=None)
    return None if newest is None else found[newest]


def _collection(existing: ExistingProduct, found: Mapping[Lidvid, ExistingProduct]) -> Collection:
    """Return a collection with the members that its inventory names; absent members are secondary."""
    root = load_xml(existing.label.read_bytes(), str(existing.label))
    kind = child_text(root.find(f"{PDS}Collection"), "collection_type")
    members: list[CopiedProduct] = []
    secondary: list[Lid | Lidvid] = []
    home = existing.label.parent
    for status, to in read_inventory(existing):
        product = find_product(to, found)
        if product is not None:
            below = product.label.parent.relative_to(home) if product.label.is_relative_to(home) else Path()
            folder = "" if below == Path() else below.as_posix()
            kept = CopiedProduct(product.lidvid, product.label, product.paths, folder, status == "S")
            members.append(kept)
        else:
            secondary.append(to)
    lid, description = existing.lidvid.lid, child_text(root.find(f"{PDS}Collection"), "description")
    return Collection(
        lid, cast("CollectionType", kind), existing.title, members, tuple(secondary), description,
        vid=existing.lidvid.vid, as_found=True,
    )  # fmt: skip


def read_inventory(collection: ExistingProduct) -> list[tuple[str, Lid | Lidvid]]:
    """Return the members of a collection: `P` or `S`, and what they are called.

    Raises
    ------
    ParseError
        With the line, for what is no member.
    """
    inventory = next((path for path in collection.paths if path.is_file()), None)
    if inventory is None:
        raise ParseError(f"{collection.lidvid} has no inventory", where=str(collection.label))
    members: list[tuple[str, Lid | Lidvid]] = []
    for number, line in enumerate(inventory.read_text("utf-8", "replace").splitlines(), 1):
        if not line.strip():
            continue
        status, _, name = (part.strip().strip('"') for part in line.partition(","))
        try:
            members.append((status.upper(), identifier_of(name)))
        except UsageError as error:
            where = f"{inventory}:{number}"
            raise ParseError("this is no member of a collection", where=where, why=error.what) from error
    return members


def _type_of(reference: str) -> CollectionType:
    """Return the type of a collection by the reference of its bundle to it."""
    word = reference.removeprefix("bundle_has_").removesuffix("_collection")
    known = {"schema": "XML Schema", "spice_kernel": "SPICE Kernel"}
    return cast("CollectionType", known.get(word, word.capitalize()))


PUBLISHERS = {
    "nasa": "NASA Planetary Data System", "esa": "ESA Planetary Science Archive",
    "jaxa": "JAXA Data Archives and Transmission System", "ros": "Roscosmos",
    "isro": "ISRO Science Data Archive", "kari": "KARI Planetary Data System",
}  # fmt: skip
"""Publisher by the agency in an identifier."""
_BETWEEN = re.compile(r"(?<=\.),\s+(?:and\s+)?|\s+and\s+|\s+&\s+")
"""Between authors who are not parted by semicolons: `Doe, J., Roe, R. and Poe, E.`"""
_INITIALS = re.compile(r"^([^,]+?)\s+((?:[A-Z]\.[\s-]*)+)$")
"""A person whose initials follow without a comma: `Semenov B. V.`"""


def bundle_citation(folder: Path, authors: Sequence[str] = (), publisher: str = "") -> Citation:
    """Return the citation of a bundle.

    Parameters
    ----------
    folder : Path
        The bundle, or its label.
    authors : sequence of str
        Instead of those in the label: `Family, Given`, or the name of an organisation.
    publisher : str
        Instead of the agency's archive.

    Raises
    ------
    ParseError
        If there is no bundle, or its label has no citation.
    UsageError
        If nobody is named as its author.
    """
    bundle, _ = open_bundle(folder)
    root = load_xml(bundle.label.read_bytes(), str(bundle.label))
    area = root.find(f"{PDS}Identification_Area/{PDS}Citation_Information")
    if area is None:
        raise ParseError(f"{bundle.lidvid} does not say how it is cited", where=str(bundle.label))
    named_authors = [Author(name) for name in authors] or list(_authors(area))
    if not named_authors:
        raise UsageError(
            "nobody is named as its author", where=str(bundle.label), hint='--author "Doe, Jane"'
        )
    lid = bundle.lidvid.lid
    found = Citation(
        " ".join(bundle.title.split()), named_authors, int(child_text(area, "publication_year") or 0),
        publisher or PUBLISHERS.get(lid.parts[1], lid.parts[1].upper()), str(bundle.lidvid.vid),
        child_text(area, "doi"), str(bundle.lidvid), "PDS4 bundle",
        child_text(root.find(f"{PDS}Bundle"), "description") or child_text(area, "description"),
        keywords=[each.text.strip() for each in area.iterfind(f"{PDS}keyword") if each.text],
    )  # fmt: skip
    return replace(found, related=list(_list_related(root)))


def _authors(area: Any) -> Iterator[Author]:
    """Yield the authors: from the list that new models have, else from the text that old ones have."""
    listed = area.find(f"{PDS}List_Author")
    for each in () if listed is None else listed:
        family, given = child_text(each, "family_name"), child_text(each, "given_name")
        name = f"{family}, {given}" if family and given else family or child_text(each, "display_full_name")
        name = name or child_text(each, "organization_name")
        orcid = child_text(each, "person_orcid")
        if name:
            yield Author(name, child_text(each.find(f"{PDS}Affiliation"), "organization_name"), orcid)
    text = child_text(area, "author_list")
    for name in text.split(";") if ";" in text else _BETWEEN.split(text):
        if name.strip() and listed is None:
            yield Author(_INITIALS.sub(r"\1, \2", name.strip()))


def _list_related(root: Any) -> Iterator[Related]:
    """Yield collections of other bundles, and what the label refers to in the literature."""
    for entry in root.iterfind(f"{PDS}Bundle_Member_Entry"):
        if child_text(entry, "member_status") == "Secondary":
            to = child_text(entry, "lidvid_reference") or child_text(entry, "lid_reference")
            yield Related(to, "IsSupplementedBy")
    for reference in root.iter(f"{PDS}External_Reference"):
        if doi := child_text(reference, "doi"):
            yield Related(doi, "References")
