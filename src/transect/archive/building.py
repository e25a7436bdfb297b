"""Bundles on disk: written beside the one that is there, whose place they take in one step when whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import md5
from pathlib import Path
from typing import IO, Any, cast

from transect.base import files
from transect.errors import ParseError, UsageError

from .bundle import Bundle, Collection, Kept, Product, products_of
from .context import registrations
from .existing import Existing, find_products
from .identifiers import Lid, Lidvid, Vid
from .labels.areas import Citation, Context
from .labels.objects import InventoryTable
from .labels.products import Written, bundle_label, collection_label, product_label, readme_object
from .versions import MEMBERS, Outcome, Versioning, data_changed, with_times_kept

README = "readme.txt"
CRLF = "\r\n"


@dataclass(frozen=True)
class Built:
    """What a build made."""

    folder: Path
    lidvid: Lidvid  # of the bundle
    # what became of each product since the bundle before: `new`, `major`, `minor`, `none`
    changes: dict[Lidvid, str] = field(default_factory=dict[Lidvid, str])
    # the primary members of each collection
    collections: dict[Lidvid, list[Lidvid]] = field(default_factory=dict[Lidvid, list[Lidvid]])
    removed: tuple[Lid, ...] = ()  # products of the bundle before that are not in this one
    checksums: Path = Path()  # the checksum manifest, beside the folder
    size: int = 0  # bytes
    losses: tuple[str, ...] = ()  # what could not be archived, and why
    notes: tuple[str, ...] = ()  # what a person should know


def build_bundle(bundle: Bundle, folder: Path) -> Built:
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
        builder = _Builder(bundle, work / folder.name, previous)
        built = builder.build()
        manifest = work / manifest_path(folder).name
        write_checksums(builder.written, manifest)
        files.replace_folder(builder.folder, folder)
        os.replace(manifest, manifest_path(folder))
    if text := registrations(products_of(bundle)):
        files.write_text(context_path(folder), text)
    return Built(
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


def _refuse_others(bundle: Bundle, folder: Path) -> dict[Lid, Existing]:
    """Return what is in the folder; refuse one that holds something else than this bundle."""
    if folder.is_symlink() or folder.is_file():
        raise UsageError(f"{folder} is there already", where=str(folder), hint="choose another name")
    if not folder.is_dir() or not any(folder.iterdir()):
        return {}
    previous = find_products(folder)
    if bundle.lid not in previous:
        names = sorted(str(lid) for lid, each in previous.items() if each.kind == "Product_Bundle")
        why = f"it holds {names[0]}" if names else "it holds no bundle"
        hint = "choose another folder, or name the bundle as this one"
        raise UsageError(f"{folder} does not hold {bundle.lid}", where=str(folder), why=why, hint=hint)
    return previous


class _Builder:
    """Writes one bundle to a new folder."""

    def __init__(self, bundle: Bundle, folder: Path, previous: dict[Lid, Existing]) -> None:
        self.folder, self.previous = folder, previous
        self.bundle = replace(bundle, citation=bundle.citation or _citation_of(bundle))
        self.versioning = Versioning(bundle.created[:10])
        self.changes: dict[Lidvid, str] = {}
        self.collections: dict[Lidvid, list[Lidvid]] = {}
        self.written: dict[str, tuple[int, str]] = {}
        self.losses: list[str] = []
        known = {lid for lid, each in previous.items() if each.kind != "Product_Bundle"}
        here = {each.lid for each in bundle.collections}
        here |= {member.lid for each in bundle.collections for member in each.members}
        self.removed = tuple(sorted(known - here))

    def build(self) -> Outcome:
        """Write all of it; the bundle's own label comes last."""
        bundle = self.bundle
        kept = [(each, done) for each in bundle.collections if (done := self.collection(each)) is not None]
        if not kept:
            raise ParseError(f"nothing of {bundle.lid} could be read", why="; ".join(self.losses[:3]))
        made = [done for _, done in kept]
        contexts = [_context_of(each) for each, _ in kept]
        context = bundle.context or Context().joined(contexts)
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

    def readme(self) -> Written | None:
        if not self.bundle.readme:
            return None
        text = CRLF.join(self.bundle.readme.splitlines()).encode() + CRLF.encode()
        written = self.file(self.folder / README, (text,), (readme_object(text),))
        return with_times_kept([written], self.previous.get(self.bundle.lid))[0]

    def collection(self, collection: Collection) -> Outcome | None:
        """Write a collection: its products, its inventory, its label; None if all products are lost."""
        collection = replace(collection, citation=self.cited(collection))
        home = self.folder / collection.lid.name
        made = [each for each in (self.member(one, home) for one in collection.members) if each is not None]
        if not made and not collection.secondary:
            files.remove_tree(home)
            return None
        name = f"collection_{collection.lid.name}"
        others = {each.lidvid for each in collection.members if isinstance(each, Kept) and each.secondary}
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

    def member(self, member: Product | Kept, home: Path) -> Outcome | None:
        """Write a member; one whose data cannot be read is a loss, and the others are kept."""
        if isinstance(member, Kept):
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

    def product(self, product: Product, home: Path) -> Outcome:
        """Write a product: its files, then its label."""
        if product.kind == "Product_Document":
            product = replace(product, citation=self.cited(product))
        place = home / product.folder if product.folder else home
        made: list[Written] = []
        for each in product.files:
            with self.measured(place / each.name) as out:
                objects = tuple(each.content.write(cast("IO[bytes]", out)))
            created = each.created or self.bundle.created
            made.append(Written(each.name, out.size, out.md5, objects, created, each.comment))
        previous = self.previous.get(product.lid)
        made = with_times_kept(made, previous)
        outcome = self.versioning.decide(
            _name_version(product.lid, product.vid), product.lid.at(Vid()), previous,
            data_changed(made, previous),
            lambda version: product_label(product, version, made, self.bundle.standard),
        )  # fmt: skip
        return self.label(place / product.label_name, outcome)

    def kept(self, member: Kept, home: Path) -> Outcome:
        """Copy a product with its label."""
        place = home / member.folder if member.folder else home
        for path in (member.label, *member.files):
            with path.open("rb") as source, self.measured(place / path.name) as out:
                shutil.copyfileobj(source, cast("Any", out), 1 << 20)
        previous = self.previous.get(member.lid)
        if previous is None or previous.lidvid.vid < member.lidvid.vid:
            return self.note(Outcome(member.lidvid, "", "new" if previous is None else "major"))
        if previous.label.read_bytes() != member.label.read_bytes():
            what = f"{member.lidvid} is there already, with another label"
            raise UsageError(what, where=str(member.label), why="a version never changes")
        return self.note(Outcome(member.lidvid, "", "none"))

    def cited(self, thing: Product | Collection) -> Citation:
        """Return how to cite what has no citation of its own: as the bundle, by its own title."""
        assert self.bundle.citation is not None
        return thing.citation or replace(self.bundle.citation, description=thing.title, doi="")

    def label(self, path: Path, outcome: Outcome) -> Outcome:
        self.file(path, (outcome.label.encode(),))
        return self.note(outcome)

    def note(self, outcome: Outcome) -> Outcome:
        self.changes[outcome.lidvid] = outcome.change
        return outcome

    def file(self, path: Path, pieces: Iterable[bytes], objects: tuple[Any, ...] = ()) -> Written:
        with self.measured(path) as out:
            for piece in pieces:
                out.write(piece)
        return Written(path.name, out.size, out.md5, objects, self.bundle.created)

    @contextmanager
    def measured(self, path: Path) -> Generator[Measured]:
        """Open a new file whose bytes are counted; the folder is not seen by anybody yet."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as stream:
            out = Measured(stream)
            yield out
        self.written[path.relative_to(self.folder).as_posix()] = (out.size, out.md5)


class Measured:
    """A file that knows how many bytes were written, and their md5."""

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


def _citation_of(bundle: Bundle) -> Citation:
    return Citation(bundle.description or bundle.title, int(bundle.created[:4]))


def _context_of(collection: Collection) -> Context:
    if collection.context is not None:
        return collection.context
    return Context().joined(each.context for each in collection.members if isinstance(each, Product))


def _name_version(lid: Lid, vid: Vid | None) -> Lidvid | None:
    return None if vid is None else lid.at(vid)
