"""Complete labels of products, collections and bundles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..identifiers import Lid, Lidvid, Vid
from ..standard import Standard
from ..xml import LabelElement, ascii_text, document_text, group, leaf, nil
from .areas import ProductContext, VersionChange, authors, context_area, identification_area, reference_list
from .objects import DataObject, HeaderObject, InventoryTable, TableObject, TextObject, element_of

if TYPE_CHECKING:
    from ..bundle import Bundle, BundleProduct, Collection, ProductDocument

_AREAS = {
    "Product_Observational": "File_Area_Observational", "Product_Ancillary": "File_Area_Ancillary",
    "Product_Browse": "File_Area_Browse",
}  # fmt: skip


@dataclass(frozen=True)
class WrittenFile:
    """A written file."""

    name: str
    size: int  # bytes
    md5: str
    objects: tuple[DataObject, ...]  # what lies in it, first byte first
    created: str  # when, in UTC
    comment: str = ""

    @property
    def records(self) -> int | None:
        """How many records it has; None for files that do not consist of records."""
        counted = [_records(each) for each in self.objects]
        return None if not counted or None in counted else sum(each or 0 for each in counted)


def _records(thing: DataObject) -> int | None:
    if isinstance(thing, HeaderObject):
        return 1
    return thing.records if isinstance(thing, TableObject | InventoryTable) else None


@dataclass(frozen=True)
class LabelVersion:
    """Which version a label is for, and what the versions changed."""

    vid: Vid
    history: tuple[VersionChange, ...] = ()  # the newest first


def product_label(
    product: BundleProduct, version: LabelVersion, files: Sequence[WrittenFile], standard: Standard
) -> str:
    """Return the label of a product."""
    if product.render is not None:
        return product.render(version, files)
    if product.kind == "Product_Context":
        body: list[LabelElement | None] = [reference_list(product.references), product.subject]
    else:
        body = [context_area(product.context, product.kind), reference_list(product.references)]
    if product.document is not None:
        body.append(_document(product.document, files, standard))
    elif product.kind in _AREAS:
        body += [
            group(_AREAS[product.kind], _file(each, number), map(element_of, each.objects))
            for number, each in enumerate(files, 1)
        ]
    return _label(product.kind, product, version, body, standard)


def collection_label(
    collection: Collection,
    version: LabelVersion,
    context: ProductContext,
    inventory: WrittenFile,
    standard: Standard,
) -> str:
    """Return the label of a collection with its inventory."""
    about = group(
        "Collection", leaf("collection_type", collection.type), leaf("description", collection.description)
    )
    area = group("File_Area_Inventory", _file(inventory), map(element_of, inventory.objects))
    kind = "Product_Collection"
    body = [context_area(context, kind), reference_list(collection.references), about, area]
    return _label(kind, collection, version, body, standard)


def bundle_label(
    bundle: Bundle,
    version: LabelVersion,
    context: ProductContext,
    members: Sequence[tuple[Lid | Lidvid, str, bool]],
    readme: WrittenFile | None,
) -> str:
    """Return the label of a bundle; members are what is referred to, its type, and whether it is primary."""
    about = group("Bundle", leaf("bundle_type", "Archive"), leaf("description", bundle.description))
    text = None
    if readme is not None:
        text = group("File_Area_Text", _file(readme), map(element_of, readme.objects))
    entries = [_member(to, type, primary) for to, type, primary in members]
    kind = "Product_Bundle"
    body = [context_area(context, kind), reference_list(bundle.references), about, text, *entries]
    return _label(kind, bundle, version, body, bundle.standard)


def _member(to: Lid | Lidvid, type: str, primary: bool) -> LabelElement:
    word = {"XML Schema": "schema"}.get(type, type.replace(" ", "_").lower())
    return group(
        "Bundle_Member_Entry",
        leaf("lidvid_reference" if isinstance(to, Lidvid) else "lid_reference", to),
        leaf("member_status", "Primary" if primary else "Secondary"),
        leaf("reference_type", f"bundle_has_{word}_collection"),
    )


def _label(
    kind: str,
    thing: BundleProduct | Collection | Bundle,
    version: LabelVersion,
    body: Sequence[LabelElement | None],
    standard: Standard,
) -> str:
    lidvid = thing.lid.at(version.vid)
    area = identification_area(lidvid, thing.title, kind, standard, thing.citation, version.history)
    content = group(kind, area, body)
    used = content.prefixes() - {"xsi"}
    root = LabelElement(kind, content.content, standard.attributes(used))
    return document_text(root, standard.instructions(used))


def _file_facts(file: WrittenFile, identifier: str) -> list[LabelElement | None]:
    return [
        leaf("file_name", file.name), leaf("local_identifier", identifier),
        leaf("creation_date_time", file.created), leaf("file_size", file.size, unit="byte"),
        leaf("records", file.records), leaf("md5_checksum", file.md5),
        leaf("comment", ascii_text(file.comment)),
    ]  # fmt: skip


def _file(file: WrittenFile, number: int = 1) -> LabelElement:
    return group("File", _file_facts(file, "file" if number == 1 else f"file_{number}"))


def _document(document: ProductDocument, files: Sequence[WrittenFile], standard: Standard) -> LabelElement:
    before, after = authors(document.authors, standard)
    listed = (
        group(
            "Document_File", _file_facts(each, "file" if number == 1 else f"file_{number}"),
            leaf("document_standard_id", followed),
        )
        for number, (each, followed) in enumerate(zip(files, document.standards, strict=True), 1)
    )  # fmt: skip
    edition = group(
        "Document_Edition", leaf("edition_name", document.name or "First edition"),
        leaf("language", "English"), leaf("files", len(files)), listed,
    )  # fmt: skip
    return group(
        "Document", leaf("document_name", document.name), before,
        leaf("publication_date", document.date) or nil("publication_date"),
        leaf("document_editions", 1), leaf("description", document.description), edition, after,
    )  # fmt: skip


def readme_object(text: bytes) -> TextObject:
    """Return what a text file is, for its label."""
    return TextObject(len(text), ascii=text.isascii())
