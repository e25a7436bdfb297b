"""Labels of packages for the deep archive: `Product_AIP` and `Product_SIP_Deep_Archive`."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import md5

from ..identifiers import Lid, Lidvid, Vid
from ..standard import RECENT
from ..xml import Element, document_text, group, leaf
from .areas import Change, Reference, identification_area
from .objects import CRLF

FIRST = Vid()
AIP, SIP = "Product_AIP", "Product_SIP_Deep_Archive"
WIDTH = 255
"""Bytes of each of the two fields of a transfer manifest."""
_SIP_FIELDS = (
    ("checksum", "Checksum of the file"),
    ("checksum_type", "Kind of the checksum"),
    ("file_specification_url", "Address of the file"),
    ("LIDVID", "Product that the file belongs to"),
)


@dataclass(frozen=True)
class Manifest:
    """A manifest as it is written."""

    name: str
    content: bytes
    records: int

    @property
    def md5(self) -> str:
        """Of its bytes, in hexadecimal."""
        return _md5(self.content)


@dataclass(frozen=True)
class Package:
    """What both labels say."""

    bundle: Lidvid
    title: str  # of the bundle
    base: str  # what the names of the files begin with
    created: str  # in UTC
    vid: Vid = FIRST

    def lidvid(self, kind: str) -> Lidvid:
        """Return the identifier of one of the two, `Product_AIP` or `Product_SIP_Deep_Archive`."""
        return Lid(f"urn:nasa:pds:system_bundle:{kind.lower()}:{self.base}").at(self.vid)


def aip_label(package: Package, checksums: Manifest, transfer: Manifest) -> str:
    """Return the label of an archival information package."""
    component = group(
        "Information_Package_Component",
        leaf("checksum_manifest_checksum", checksums.md5),
        leaf("checksum_type", "MD5"),
        leaf("transfer_manifest_checksum", transfer.md5),
        Reference(package.bundle, "package_has_bundle").element(),
        group("File_Area_Checksum_Manifest", _file(checksums, package), _checksums(checksums)),
        group("File_Area_Transfer_Manifest", _file(transfer, package), _transfer(transfer)),
    )
    description = leaf("description", f"Archival information package of {package.bundle}")
    about = group("Archival_Information_Package", description)
    return _label(package, AIP, "Archival information package", (component, about))


def sip_label(package: Package, delivery: Manifest, url: str, site: str, aip: bytes) -> str:
    """Return the label of a submission information package; `aip` are the bytes of the other label."""
    component = group(
        "Information_Package_Component_Deep_Archive",
        leaf("manifest_checksum", delivery.md5),
        leaf("checksum_type", "MD5"),
        leaf("manifest_url", url),
        leaf("aip_lidvid", package.lidvid(AIP)),
        leaf("aip_label_checksum", _md5(aip)),
        group("File_Area_SIP_Deep_Archive", _file(delivery, package), _delivery(delivery)),
        Reference(package.bundle, "package_has_bundle").element(),
    )
    description = leaf("description", f"Submission information package of {package.bundle}")
    about = group("SIP_Deep_Archive", description, leaf("provider_site_id", site))
    return _label(package, SIP, "Submission information package", (component, about))


def _label(package: Package, kind: str, word: str, body: tuple[Element, ...]) -> str:
    made = Change(package.created[:10], package.vid, f"{word} made")
    title = f"{word} of {package.title}"
    area = identification_area(package.lidvid(kind), title, kind, RECENT, None, (made,))
    return document_text(Element(kind, (area, *body), RECENT.attributes(set())), RECENT.instructions(set()))


def _file(manifest: Manifest, package: Package) -> Element:
    return group(
        "File", leaf("file_name", manifest.name), leaf("creation_date_time", package.created),
        leaf("file_size", len(manifest.content), unit="byte"), leaf("records", manifest.records),
        leaf("md5_checksum", manifest.md5),
    )  # fmt: skip


def _checksums(manifest: Manifest) -> Element:
    return group(
        "Checksum_Manifest", leaf("name", "checksum manifest"), leaf("offset", 0, unit="byte"),
        leaf("object_length", len(manifest.content), unit="byte"),
        leaf("parsing_standard_id", "MD5Deep 4.n"), leaf("record_delimiter", CRLF),
    )  # fmt: skip


def _transfer(manifest: Manifest) -> Element:
    fields = (
        group(
            "Field_Character", leaf("name", name), leaf("field_number", number),
            leaf("field_location", 1 + (number - 1) * WIDTH, unit="byte"), leaf("data_type", kind),
            leaf("field_length", WIDTH, unit="byte"),
        )
        for number, (name, kind) in enumerate(
            (("LIDVID", "ASCII_LIDVID"), ("File Specification Name", "ASCII_File_Specification_Name")), 1
        )
    )  # fmt: skip
    record = group(
        "Record_Character", leaf("fields", 2), leaf("groups", 0),
        leaf("record_length", 2 * WIDTH + 2, unit="byte"), fields,
    )  # fmt: skip
    return group(
        "Transfer_Manifest", leaf("name", "transfer manifest"), leaf("offset", 0, unit="byte"),
        leaf("records", manifest.records), leaf("record_delimiter", CRLF), record,
    )  # fmt: skip


def _delivery(manifest: Manifest) -> Element:
    fields = (
        group(
            "Field_Delimited", leaf("name", name), leaf("field_number", number),
            leaf("data_type", "ASCII_String"), leaf("description", description),
        )
        for number, (name, description) in enumerate(_SIP_FIELDS, 1)
    )  # fmt: skip
    return group(
        "Manifest_SIP_Deep_Archive", leaf("name", "Delivery Manifest Table"),
        leaf("local_identifier", "Table"), leaf("offset", 0, unit="byte"),
        leaf("object_length", len(manifest.content), unit="byte"), leaf("parsing_standard_id", "PDS DSV 1"),
        leaf("description", "One bundle for the deep archive"), leaf("records", manifest.records),
        leaf("record_delimiter", CRLF), leaf("field_delimiter", "Horizontal Tab"),
        group("Record_Delimited", leaf("fields", len(_SIP_FIELDS)), leaf("groups", 0), fields),
    )  # fmt: skip


def _md5(content: bytes) -> str:
    return md5(content, usedforsecurity=False).hexdigest()
