"""Building of bundles: versions of products, and atomic replacement of the previous bundle."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import md5
from pathlib import Path
from typing import IO, Any, cast

from transect.base import files
from transect.errors import ParseError, UsageError

from .bundle import Bundle, BundleProduct, Collection, CopiedProduct, products_of
from .bundle_reader import ExistingProduct, find_products
from .context import registrations
from .identifiers import Lid, Lidvid, Vid
from .labels.areas import CitationInformation, ProductContext, VersionChange
from .labels.objects import InventoryTable
from .labels.products import (
    LabelVersion,
    WrittenFile,
    bundle_label,
    collection_label,
    product_label,
    readme_object,
)

DATA, LABEL, MEMBERS = "data changed", "label changed", "members changed"


@dataclass(frozen=True)
class VersionOutcome:
    """A version of something, and its label."""

    lidvid: Lidvid
    label: str
    change: str  # since the version before


@dataclass(frozen=True)
class VersionRules:
    """The inputs of the version of a product."""

    date: str  # of this build, for histories

    def decide(
        self,
        wanted: Lidvid | None,
        first: Lidvid,
        previous: ExistingProduct | None,
        major: bool,
        render: Callable[[LabelVersion], str],
        why: str = DATA,
    ) -> VersionOutcome:
        """Return the version of something whose label `render` writes.

        The next major version if the data changed (`major`), the next minor one if only the label did, the
        same one, byte by byte, if nothing did.

        Parameters
        ----------
        wanted : Lidvid or None
            The version that a person asked for.
        first : Lidvid
            Its version if there was none before.
        """
        if previous is None:
            lidvid = wanted or first
            return VersionOutcome(lidvid, render(LabelVersion(lidvid.vid)), "new")
        before = previous.lidvid.vid
        same = render(LabelVersion(before, previous.history))
        unchanged = not major and same.encode() == previous.label.read_bytes()
        if unchanged and (wanted is None or wanted.vid == before):
            return VersionOutcome(previous.lidvid, same, "none")
        natural = before.next_major if major else before.next_minor
        vid = natural if wanted is None else _refuse_reuse(wanted, before, major)
        change = VersionChange(self.date, vid, why if major else LABEL)
        history = (change, *previous.history)
        return VersionOutcome(
            first.lid.at(vid), render(LabelVersion(vid, history)), "major" if major else "minor"
        )


def _refuse_reuse(wanted: Lidvid, before: Vid, major: bool) -> Vid:
    if wanted.vid > before:
        return wanted.vid
    what = f"{wanted} exists already, with other {'data' if major else 'labels'}"
    if wanted.vid < before:
        what = f"{wanted.lid} exists already as version {before}"
    raise UsageError(
        what, where=str(wanted), why="a version never changes",
        hint=f"leave its version out, or name {before.next_major if major else before.next_minor}",
    )  # fmt: skip


def data_changed(files: Sequence[WrittenFile], previous: ExistingProduct | None) -> bool:
    """Return whether a product's files are others than before: names or bytes."""
    if previous is None:
        return False
    before = {
        name: known or _md5_of(previous.label.parent / name) for name, (known, _) in previous.files.items()
    }
    return {each.name: each.md5 for each in files} != before


def with_times_kept(files: Sequence[WrittenFile], previous: ExistingProduct | None) -> list[WrittenFile]:
    """Return files; unchanged ones keep their time of creation."""
    known = {} if previous is None else previous.files
    return [
        replace(each, created=known[each.name][1])
        if each.name in known and known[each.name][0] == each.md5 and known[each.name][1]
        else each
        for each in files
    ]


def _md5_of(path: Path) -> str:
    digest = md5(usedforsecurity=False)
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


README = "readme.txt"
CRLF = "\r\n"


@dataclass(frozen=True)
class BuiltBundle:
    """The result of a build."""

    folder: Path
    lidvid: Lidvid  # of the bundle
    # what became of each product since the bundle before: `new`, `major`, `minor`, `none`
    changes: dict[Lidvid, str] = field(default_factory=dict[Lidvid, str])
    # the primary members of each collection
    collections: dict[Lidvid, list[Lidvid]] = field(default_factory=dict[Lidvid, list[Lidvid]])
    removed: tuple[Lid, ...] = ()  # products of the bundle before that are not in this one
    checksums: Path = Path()  # the checksum manifest, beside the folder
    size: int = 0  # bytes
    losses: tuple[str, ...] = ()  # data that could not be archived, with the reason
    notes: tuple[str, ...] = ()  # notes for the user


def build_bundle(bundle: Bundle, folder: Path) -> BuiltBundle:
    """Write a bundle to a folder; a bundle of the same name that is there is followed by the next version.

    Nothing in the folder changes before all is written; then the new folder takes its place.

    Raises
    ------
    UsageError
        If the folder holds something else, or a version would be used again for other bytes.
    """
    folder = folder.absolute()
    previous = _refuse_others(bundle, folder)
    with files.workplace(folder) as work:
        builder = _BundleBuilder(bundle, work / folder.name, previous)
        built = builder.build()
        manifest = work / manifest_path(folder).name
        write_checksums(builder.written, manifest)
        files.replace_folder(builder.folder, folder)
        os.replace(manifest, manifest_path(folder))
    if text := registrations(products_of(bundle)):
        files.write_text(context_path(folder), text)
    return BuiltBundle(
        folder, built.lidvid, builder.changes, builder.collections, builder.removed, manifest_path(folder),
        sum(size for size, _ in builder.written.values()), tuple(builder.losses),
    )  # fmt: skip


def manifest_path(folder: Path) -> Path:
    """Return where the checksum manifest of a bundle is: beside it, since all in a bundle has a label."""
    return folder.with_name(f"{folder.name}.md5")


def context_path(folder: Path) -> Path:
    """Return where the list of a bundle's own context products is, which have yet to be registered."""
    return folder.with_name(f"{folder.name}.context.json")


def write_checksums(written: dict[str, tuple[int, str]], path: Path) -> None:
    """Write a checksum manifest: md5, two blanks and the path of each file, as `md5sum -c` reads it."""
    files.write_text(path, "".join(f"{digest}  {name}\n" for name, (_, digest) in sorted(written.items())))


def _refuse_others(bundle: Bundle, folder: Path) -> dict[Lid, ExistingProduct]:
    """Return what is in the folder; refuse one that holds something else than this bundle."""
    if folder.is_symlink() or folder.is_file():
        raise UsageError(f"{folder} exists already", where=str(folder), hint="choose another name")
    if not folder.is_dir() or not any(folder.iterdir()):
        return {}
    previous = find_products(folder)
    if bundle.lid not in previous:
        names = sorted(str(lid) for lid, each in previous.items() if each.kind == "Product_Bundle")
        why = f"it holds {names[0]}" if names else "it holds no bundle"
        hint = "choose another folder, or name the bundle as this one"
        raise UsageError(f"{folder} does not hold {bundle.lid}", where=str(folder), why=why, hint=hint)
    return previous


class _BundleBuilder:
    """Writes one bundle to a new folder."""

    def __init__(self, bundle: Bundle, folder: Path, previous: dict[Lid, ExistingProduct]) -> None:
        self.folder, self.previous = folder, previous
        self.bundle = replace(bundle, citation=bundle.citation or _citation_of(bundle))
        self.versioning = VersionRules(bundle.created[:10])
        self.changes: dict[Lidvid, str] = {}
        self.collections: dict[Lidvid, list[Lidvid]] = {}
        self.written: dict[str, tuple[int, str]] = {}
        self.losses: list[str] = []
        known = {lid for lid, each in previous.items() if each.kind != "Product_Bundle"}
        here = {each.lid for each in bundle.collections}
        here |= {member.lid for each in bundle.collections for member in each.members}
        self.removed = tuple(sorted(known - here))

    def build(self) -> VersionOutcome:
        """Write the bundle; its own label is written last."""
        bundle = self.bundle
        kept = [(each, done) for each in bundle.collections if (done := self.collection(each)) is not None]
        if not kept:
            raise ParseError(f"nothing of {bundle.lid} could be read", why="; ".join(self.losses[:3]))
        made = [done for _, done in kept]
        contexts = [_context_of(each) for each, _ in kept]
        context = bundle.context or ProductContext().joined(contexts)
        readme = self.readme()
        members = [
            *((done.lidvid, each.type, True) for each, done in kept),
            *((to, type, False) for to, type in bundle.secondary),
        ]
        previous = self.previous.get(bundle.lid)
        major = previous is not None and any(each.change in ("new", "major") for each in made)
        major = major or any(lid.level == "collection" for lid in self.removed)
        outcome = self.versioning.decide(
            _name_version(bundle.lid, bundle.vid), bundle.lid.at(Vid()), previous, major,
            lambda version: bundle_label(bundle, version, context, members, readme), MEMBERS,
        )  # fmt: skip
        return self.label(self.folder / f"bundle_{bundle.lid.name}.xml", outcome)

    def readme(self) -> WrittenFile | None:
        if not self.bundle.readme:
            return None
        text = CRLF.join(self.bundle.readme.splitlines()).encode() + CRLF.encode()
        written = self.file(self.folder / README, (text,), (readme_object(text),))
        return with_times_kept([written], self.previous.get(self.bundle.lid))[0]

    def collection(self, collection: Collection) -> VersionOutcome | None:
        """Write a collection: its products, its inventory, its label; None if all products are lost."""
        collection = replace(collection, citation=self.cited(collection))
        home = self.folder / collection.lid.name
        made = [each for each in (self.member(one, home) for one in collection.members) if each is not None]
        if not made and not collection.secondary:
            files.remove_tree(home)
            return None
        name = f"collection_{collection.lid.name}"
        others = {
            each.lidvid for each in collection.members if isinstance(each, CopiedProduct) and each.secondary
        }
        primary = [each.lidvid for each in made if each.lidvid not in others]
        lines = inventory_lines(primary, [*others, *collection.secondary])
        table = InventoryTable(len(lines), max((len(line) for line in lines), default=0))
        text = "".join(lines).encode()
        inventory = self.file(home / f"{name}_inventory.csv", (text,), (table,))
        previous = self.previous.get(collection.lid)
        [inventory] = with_times_kept([inventory], previous)
        gone = any(lid.is_member_of(collection.lid) for lid in self.removed)
        grown = gone or any(each.change in ("new", "major") for each in made)
        context = collection.context or _context_of(collection)
        outcome = self.versioning.decide(
            _name_version(collection.lid, collection.vid), collection.lid.at(Vid()), previous,
            previous is not None and grown,
            lambda version: collection_label(
                collection, version, context, inventory, self.bundle.standard
            ),
            MEMBERS,
        )  # fmt: skip
        self.collections[outcome.lidvid] = [each.lidvid for each in made]
        return self.label(home / f"{name}.xml", outcome)

    def member(self, member: BundleProduct | CopiedProduct, home: Path) -> VersionOutcome | None:
        """Write a member; one whose data cannot be read is a loss, and the others are kept."""
        if isinstance(member, CopiedProduct):
            return self.kept(member, home)
        try:
            return self.product(member, home)
        except ParseError as error:
            self.losses.append(f"{member.lid}: {error.what}" + (f": {error.why}" if error.why else ""))
            for file in member.files:
                path = home / member.folder / file.name
                path.unlink(missing_ok=True)
                self.written.pop(path.relative_to(self.folder).as_posix(), None)
            return None

    def product(self, product: BundleProduct, home: Path) -> VersionOutcome:
        """Write a product: its files, then its label."""
        if product.kind == "Product_Document":
            product = replace(product, citation=self.cited(product))
        place = home / product.folder if product.folder else home
        made: list[WrittenFile] = []
        for each in product.files:
            with self.measured(place / each.name) as out:
                objects = tuple(each.content.write(cast("IO[bytes]", out)))
            created = each.created or self.bundle.created
            made.append(WrittenFile(each.name, out.size, out.md5, objects, created, each.comment))
        previous = self.previous.get(product.lid)
        made = with_times_kept(made, previous)
        outcome = self.versioning.decide(
            _name_version(product.lid, product.vid), product.lid.at(Vid()), previous,
            data_changed(made, previous),
            lambda version: product_label(product, version, made, self.bundle.standard),
        )  # fmt: skip
        return self.label(place / product.label_name, outcome)

    def kept(self, member: CopiedProduct, home: Path) -> VersionOutcome:
        """Copy a product with its label."""
        place = home / member.folder if member.folder else home
        for path in (member.label, *member.files):
            with path.open("rb") as source, self.measured(place / path.name) as out:
                shutil.copyfileobj(source, cast("Any", out), 1 << 20)
        previous = self.previous.get(member.lid)
        if previous is None or previous.lidvid.vid < member.lidvid.vid:
            return self.note(VersionOutcome(member.lidvid, "", "new" if previous is None else "major"))
        if previous.label.read_bytes() != member.label.read_bytes():
            what = f"{member.lidvid} exists already, with another label"
            raise UsageError(what, where=str(member.label), why="a version never changes")
        return self.note(VersionOutcome(member.lidvid, "", "none"))

    def cited(self, thing: BundleProduct | Collection) -> CitationInformation:
        """Return how to cite what has no citation of its own: as the bundle, by its own title."""
        assert self.bundle.citation is not None
        return thing.citation or replace(self.bundle.citation, description=thing.title, doi="")

    def label(self, path: Path, outcome: VersionOutcome) -> VersionOutcome:
        self.file(path, (outcome.label.encode(),))
        return self.note(outcome)

    def note(self, outcome: VersionOutcome) -> VersionOutcome:
        self.changes[outcome.lidvid] = outcome.change
        return outcome

    def file(self, path: Path, pieces: Iterable[bytes], objects: tuple[Any, ...] = ()) -> WrittenFile:
        with self.measured(path) as out:
            for piece in pieces:
                out.write(piece)
        return WrittenFile(path.name, out.size, out.md5, objects, self.bundle.created)

    @contextmanager
    def measured(self, path: Path) -> Generator[HashingWriter]:
        """Open a new file whose bytes are counted; the folder is not seen by anybody yet."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as stream:
            out = HashingWriter(stream)
            yield out
        self.written[path.relative_to(self.folder).as_posix()] = (out.size, out.md5)


class HashingWriter:
    """A file that counts written bytes and computes their md5."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._digest, self.size = stream, md5(usedforsecurity=False), 0

    def write(self, data: Any) -> int:
        """Write bytes, or anything that has them."""
        view = memoryview(data).cast("B")
        self._digest.update(view)
        self.size += len(view)
        self._stream.write(view)
        return len(view)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self.size

    @property
    def md5(self) -> str:
        """Of what was written so far, in hexadecimal."""
        return self._digest.hexdigest()


def inventory_lines(primary: Iterable[Lidvid], secondary: Iterable[Lid | Lidvid] = ()) -> list[str]:
    """Return the records of an inventory, sorted, so that the same members give the same bytes."""
    lines = [*(f"P,{each}{CRLF}" for each in primary), *(f"S,{each}{CRLF}" for each in secondary)]
    return sorted(lines)


def _citation_of(bundle: Bundle) -> CitationInformation:
    return CitationInformation(bundle.description or bundle.title, int(bundle.created[:4]))


def _context_of(collection: Collection) -> ProductContext:
    if collection.context is not None:
        return collection.context
    return ProductContext().joined(
        each.context for each in collection.members if isinstance(each, BundleProduct)
    )


def _name_version(lid: Lid, vid: Vid | None) -> Lidvid | None:
    return None if vid is None else lid.at(vid)
