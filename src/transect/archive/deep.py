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

from .existing import (
    Existing,
    child_text,
    find_product,
    identifier_of,
    open_bundle,
    read_inventory,
)
from .identifiers import Lid, Lidvid
from .labels.packages import WIDTH, Manifest, Package, aip_label, sip_label

SITES = (
    "PDS_ATM", "PDS_ENG", "PDS_GEO", "PDS_IMG", "PDS_JPL", "PDS_NAI", "PDS_PPI", "PDS_PSI",
    "PDS_RNG", "PDS_SBN",
)  # fmt: skip
"""Who may deliver (the core's Schematron)."""


@dataclass(frozen=True)
class Entry:
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


def primary_products(bundle: Existing, found: Mapping[Lidvid, Existing]) -> Iterator[Existing]:
    """Yield a bundle, its primary collections and their primary members; secondary ones belong elsewhere."""
    yield bundle
    for to in _primary_collections(bundle):
        collection = _find(found, to, bundle)
        yield collection
        for status, member in read_inventory(collection):
            if status == "P":
                yield _find(found, member, collection)


def _primary_collections(bundle: Existing) -> Iterator[Lid | Lidvid]:
    root = load_xml(bundle.label.read_bytes(), str(bundle.label))
    for entry in root.iterfind(f"{PDS}Bundle_Member_Entry"):
        if child_text(entry, "member_status").lower() == "primary":
            said = child_text(entry, "lidvid_reference") or child_text(entry, "lid_reference")
            yield identifier_of(said)


def _find(found: Mapping[Lidvid, Existing], to: Lid | Lidvid, parent: Existing) -> Existing:
    product = find_product(to, found)
    if product is None:
        raise ParseError(f"{to} is not here", where=str(parent.label), hint="complete the bundle first")
    return product


def _entries(products: Sequence[Existing], folder: Path) -> Iterator[Entry]:
    for product in products:
        for path in (product.label, *product.paths):
            if not path.is_file():
                raise ParseError(f"{path} is not here", where=str(product.label))
            yield Entry(product.lidvid, path.relative_to(folder).as_posix(), _md5(path))


def _md5(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, lambda: md5(usedforsecurity=False)).hexdigest()


def _package_files(
    bundle: Existing, entries: Sequence[Entry], url: str, site: str, created: str
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


def checksum_manifest(name: str, entries: Sequence[Entry]) -> Manifest:
    """Return md5, tab and path of each file, as md5deep has it."""
    return _manifest(name, [f"{entry.md5}\t{entry.path}" for entry in entries])


def transfer_manifest(name: str, entries: Sequence[Entry]) -> Manifest:
    """Return the product and the path of each file, from the bundle's folder on, in records of 512 bytes."""
    ordered = sorted(entries, key=lambda entry: (str(entry.lidvid), entry.path))
    rows = [(str(entry.lidvid), f"/{entry.path}") for entry in ordered]
    if long := next((path for _, path in rows if len(path.encode()) > WIDTH), None):
        raise UsageError(f"{long} is too long for a transfer manifest", why=f"more than {WIDTH} bytes")
    return _manifest(name, [f"{lidvid:<{WIDTH}}{path:<{WIDTH}}" for lidvid, path in rows])


def sip_manifest(name: str, entries: Sequence[Entry], url: str) -> Manifest:
    """Return md5, `MD5`, address and product of each file."""
    return _manifest(
        name, [f"{entry.md5}\tMD5\t{url}/{quote(entry.path)}\t{entry.lidvid}" for entry in entries]
    )


def _manifest(name: str, lines: Sequence[str]) -> Manifest:
    return Manifest(name, "".join(f"{line}\r\n" for line in lines).encode(), len(lines))
