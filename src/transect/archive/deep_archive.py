"""Packages for the deep archive, made offline: what a bundle holds, its checksums, and where it is served.

An AIP (archival information package) is a label with two manifests: checksums (md5, tab, path) and transfer
(identifier and path, 255 bytes each). A SIP (submission information package) is a label with one: md5, its
kind, address and identifier, separated by tabs. All lines end with CR LF. Files are hashed where they are;
addresses begin with that of the bundle's folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest, md5
from pathlib import Path
from urllib.parse import quote, urlsplit

from transect.base.files import refuse_existing, staged, write_bytes
from transect.base.xml import load_xml
from transect.errors import ParseError, UsageError, did_you_mean
from transect.formats.pds4.label import NAMESPACE as PDS

from .bundle_reader import (
    ExistingProduct,
    child_text,
    find_product,
    identifier_of,
    open_bundle,
    read_inventory,
)
from .identifiers import Lid, Lidvid, Vid
from .labels.areas import LabelReference, VersionChange, identification_area
from .labels.objects import CRLF
from .standard import RECENT_STANDARD
from .xml import LabelElement, document_text, group, leaf

FIRST = Vid()
AIP, SIP = "Product_AIP", "Product_SIP_Deep_Archive"
FIELD_BYTES = 255
"""Size of each of the two fields of a transfer manifest."""
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
    """The common fields of both labels."""

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
        LabelReference(package.bundle, "package_has_bundle").element(),
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
        LabelReference(package.bundle, "package_has_bundle").element(),
    )
    description = leaf("description", f"Submission information package of {package.bundle}")
    about = group("SIP_Deep_Archive", description, leaf("provider_site_id", site))
    return _label(package, SIP, "Submission information package", (component, about))


def _label(package: Package, kind: str, word: str, body: tuple[LabelElement, ...]) -> str:
    made = VersionChange(package.created[:10], package.vid, f"{word} made")
    title = f"{word} of {package.title}"
    area = identification_area(package.lidvid(kind), title, kind, RECENT_STANDARD, None, (made,))
    return document_text(
        LabelElement(kind, (area, *body), RECENT_STANDARD.attributes(set())),
        RECENT_STANDARD.instructions(set()),
    )


def _file(manifest: Manifest, package: Package) -> LabelElement:
    return group(
        "File", leaf("file_name", manifest.name), leaf("creation_date_time", package.created),
        leaf("file_size", len(manifest.content), unit="byte"), leaf("records", manifest.records),
        leaf("md5_checksum", manifest.md5),
    )  # fmt: skip


def _checksums(manifest: Manifest) -> LabelElement:
    return group(
        "Checksum_Manifest", leaf("name", "checksum manifest"), leaf("offset", 0, unit="byte"),
        leaf("object_length", len(manifest.content), unit="byte"),
        leaf("parsing_standard_id", "MD5Deep 4.n"), leaf("record_delimiter", CRLF),
    )  # fmt: skip


def _transfer(manifest: Manifest) -> LabelElement:
    fields = (
        group(
            "Field_Character", leaf("name", name), leaf("field_number", number),
            leaf("field_location", 1 + (number - 1) * FIELD_BYTES, unit="byte"), leaf("data_type", kind),
            leaf("field_length", FIELD_BYTES, unit="byte"),
        )
        for number, (name, kind) in enumerate(
            (("LIDVID", "ASCII_LIDVID"), ("File Specification Name", "ASCII_File_Specification_Name")), 1
        )
    )  # fmt: skip
    record = group(
        "Record_Character", leaf("fields", 2), leaf("groups", 0),
        leaf("record_length", 2 * FIELD_BYTES + 2, unit="byte"), fields,
    )  # fmt: skip
    return group(
        "Transfer_Manifest", leaf("name", "transfer manifest"), leaf("offset", 0, unit="byte"),
        leaf("records", manifest.records), leaf("record_delimiter", CRLF), record,
    )  # fmt: skip


def _delivery(manifest: Manifest) -> LabelElement:
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


SITES = (
    "PDS_ATM", "PDS_ENG", "PDS_GEO", "PDS_IMG", "PDS_JPL", "PDS_NAI", "PDS_PPI", "PDS_PSI",
    "PDS_RNG", "PDS_SBN",
)  # fmt: skip
"""Delivering sites that the core's Schematron accepts."""


@dataclass(frozen=True)
class PackageEntry:
    """A file of a bundle: its product, its path below the bundle's folder, and its md5."""

    lidvid: Lidvid
    path: str
    md5: str


@dataclass(frozen=True)
class Packages:
    """What was written: names of the files in the folder, and how many files of the bundle they list."""

    folder: Path
    lidvid: Lidvid
    names: tuple[str, ...]
    files: int


def write_packages(bundle: Path, folder: Path, url: str, site: str, created: str = "") -> Packages:
    """Write AIP and SIP of a bundle to a new folder.

    Parameters
    ----------
    bundle : Path
        Its folder, or its label.
    url : str
        Where that folder is served.
    site : str
        Of `SITES`.
    created : str
        When, in UTC; "": when the newest of the bundle's files was made, as its labels say.

    Raises
    ------
    ParseError
        If the folder holds no bundle, or not all that the bundle says is primary in it.
    """
    _refuse(url, site)
    refuse_existing(folder, hint="name a new folder")
    top, found = open_bundle(bundle)
    products = list(primary_products(top, found))
    created = created or max((made for each in products for _, made in each.files.values()), default="")
    if not created:
        raise UsageError(
            "the labels do not say when the bundle was made", hint="--created 2024-05-01T12:00:00Z"
        )
    entries = sorted(_entries(products, top.label.parent), key=lambda entry: entry.path)
    files = _package_files(top, entries, url.rstrip("/"), site, created)
    with staged(folder) as target:
        for name, content in files.items():
            write_bytes(target / name, content)
    return Packages(folder, top.lidvid, tuple(files), len(entries))


def _refuse(url: str, site: str) -> None:
    if site not in SITES:
        raise UsageError(f"{site!r} is no site of the PDS", hint=did_you_mean(site, SITES))
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise UsageError(f"{url!r} is no address of a folder", hint="https://node.example/data/bundle")


def primary_products(
    bundle: ExistingProduct, found: Mapping[Lidvid, ExistingProduct]
) -> Iterator[ExistingProduct]:
    """Yield a bundle, its primary collections and their primary members; secondary ones belong elsewhere."""
    yield bundle
    for to in _primary_collections(bundle):
        collection = _find(found, to, bundle)
        yield collection
        for status, member in read_inventory(collection):
            if status == "P":
                yield _find(found, member, collection)


def _primary_collections(bundle: ExistingProduct) -> Iterator[Lid | Lidvid]:
    root = load_xml(bundle.label.read_bytes(), str(bundle.label))
    for entry in root.iterfind(f"{PDS}Bundle_Member_Entry"):
        if child_text(entry, "member_status").lower() == "primary":
            reference = child_text(entry, "lidvid_reference") or child_text(entry, "lid_reference")
            yield identifier_of(reference)


def _find(
    found: Mapping[Lidvid, ExistingProduct], to: Lid | Lidvid, parent: ExistingProduct
) -> ExistingProduct:
    product = find_product(to, found)
    if product is None:
        raise ParseError(f"{to} is not here", where=str(parent.label), hint="complete the bundle first")
    return product


def _entries(products: Sequence[ExistingProduct], folder: Path) -> Iterator[PackageEntry]:
    for product in products:
        for path in (product.label, *product.paths):
            if not path.is_file():
                raise ParseError(f"{path} is not here", where=str(product.label))
            yield PackageEntry(product.lidvid, path.relative_to(folder).as_posix(), _md5_of_file(path))


def _md5_of_file(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, lambda: md5(usedforsecurity=False)).hexdigest()


def _package_files(
    bundle: ExistingProduct, entries: Sequence[PackageEntry], url: str, site: str, created: str
) -> dict[str, bytes]:
    """Return all five files by their names."""
    base = f"{bundle.lidvid.lid.name}_v{bundle.lidvid.vid}"
    about = Package(bundle.lidvid, bundle.title, base, created)
    checksums = checksum_manifest(f"{base}_checksum_manifest_v{about.vid}.tab", entries)
    transfer = transfer_manifest(f"{base}_transfer_manifest_v{about.vid}.tab", entries)
    delivery = sip_manifest(f"{base}_sip_v{about.vid}.tab", entries, url)
    aip = aip_label(about, checksums, transfer).encode()
    sip = sip_label(about, delivery, f"{url}/{delivery.name}", site, aip).encode()
    made = {each.name: each.content for each in (checksums, transfer, delivery)}
    return {f"{base}_aip_v{about.vid}.xml": aip, f"{base}_sip_v{about.vid}.xml": sip, **made}


def checksum_manifest(name: str, entries: Sequence[PackageEntry]) -> Manifest:
    """Return md5, tab and path of each file, as md5deep has it."""
    return _manifest(name, [f"{entry.md5}\t{entry.path}" for entry in entries])


def transfer_manifest(name: str, entries: Sequence[PackageEntry]) -> Manifest:
    """Return the product and the path of each file, from the bundle's folder on, in records of 512 bytes."""
    ordered = sorted(entries, key=lambda entry: (str(entry.lidvid), entry.path))
    rows = [(str(entry.lidvid), f"/{entry.path}") for entry in ordered]
    if long := next((path for _, path in rows if len(path.encode()) > FIELD_BYTES), None):
        raise UsageError(f"{long} is too long for a transfer manifest", why=f"more than {FIELD_BYTES} bytes")
    return _manifest(name, [f"{lidvid:<{FIELD_BYTES}}{path:<{FIELD_BYTES}}" for lidvid, path in rows])


def sip_manifest(name: str, entries: Sequence[PackageEntry], url: str) -> Manifest:
    """Return md5, `MD5`, address and product of each file."""
    return _manifest(
        name, [f"{entry.md5}\tMD5\t{url}/{quote(entry.path)}\t{entry.lidvid}" for entry in entries]
    )


def _manifest(name: str, lines: Sequence[str]) -> Manifest:
    return Manifest(name, "".join(f"{line}\r\n" for line in lines).encode(), len(lines))
