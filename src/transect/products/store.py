"""What a store of products does, whatever it is kept in: put, find, follow, delete, merge, verify."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from transect.errors import TransectError, UsageError, did_you_mean

from .place import Area
from .product import Payload, Product

What = Literal["put", "merge", "delete", "prune"]
Item = tuple[Product, bytes | Path]
"""A product, and its bytes or the file that has them."""
BATCH = 1000
"""Products that are merged in one transaction."""
_SHORTEST_ID = 6


class StoreError(TransectError):
    """A store that cannot be opened, read or written, or a product that is not in it."""


class DeletedError(StoreError):
    """A product that was deleted; `why` says when and for which reason."""


@dataclass(frozen=True)
class ProductQuery:
    """What is looked for; None asks for nothing."""

    # Equal to the product's
    kind: str | None = None
    name: str | None = None
    robot: str | None = None
    mission: str | None = None
    frame: str | None = None
    time: tuple[int, int] | None = None  # [from, to) in ns: products whose time has a moment in it
    clock: str = "utc"  # of `time`
    # Products whose box meets it. Longitude and latitude also find what lies in sites on Earth whose
    # origin is known
    area: Area | None = None
    min_quality: float | None = None  # smallest score; products that nobody judged are left out
    latest: int | None = None  # only so many, those that end last

    @property
    def words(self) -> dict[str, str]:
        """What must be equal, by the names of columns."""
        named = {name: getattr(self, name) for name in ("kind", "name", "robot", "mission", "frame")}
        said = {name: value for name, value in named.items() if value is not None}
        return said | ({"clock": self.clock} if self.time is not None else {})


@dataclass(frozen=True)
class StoreEvent:
    """What happened to a product: when (ns since 1970, by the writer's clock), what, and why."""

    number: int
    t_ns: int
    what: What
    id: str
    reason: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Lineage:
    """A product and everything that it was made from: a graph in which each product is one object."""

    id: str
    product: Product | None  # none if it is not in the store
    parents: tuple[Lineage, ...] = ()
    note: str = ""  # why it is not there

    def __repr__(self) -> str:
        return f"Lineage({self.id[:12]!r}, {len(self.parents)} parents)"

    def walk(self) -> Iterator[tuple[int, Lineage, bool]]:
        """Give (depth, product, whether it comes for the first time), each product's parents once."""
        pending, met = [(0, self)], set[int]()
        while pending:
            depth, one = pending.pop()
            is_first = id(one) not in met
            yield depth, one, is_first
            if is_first:
                met.add(id(one))
                pending += [(depth + 1, parent) for parent in reversed(one.parents)]

    @property
    def ancestors(self) -> list[Lineage]:
        """The product and all that it was made from, each once."""
        return [one for _, one, is_first in self.walk() if is_first]


@dataclass(frozen=True)
class RetentionPolicy:
    """What may go when a store is pruned: products that fit all that is said; to say nothing is refused."""

    kinds: tuple[str, ...] = ()  # only these; () means all but runs, which others were made by
    before_ns: int | None = None  # what ended before this time
    keep_latest: int | None = None  # so many of each kind, name and robot stay, those that end last
    below: float | None = None  # what has a smaller score, or none

    def __post_init__(self) -> None:
        if self.before_ns is None and self.keep_latest is None and self.below is None:
            hint = "an age, how many to keep, or a quality"
            raise UsageError("a policy that says nothing would remove everything", hint=hint)


@dataclass(frozen=True)
class Merged:
    """What a merge did: ids that were added, were there, were deleted here, and are damaged there."""

    added: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verified:
    """What is wrong with a store."""

    products: int  # that were looked at
    problems: tuple[tuple[str, str], ...] = ()  # the product's id, and what is wrong with it
    # Payloads that no product has; they were removed if `sweep` was asked for
    strays: tuple[str, ...] = field(default=())


class ProductStore(ABC):
    """Where products are kept. Used with `with`, or closed by hand."""

    address: str
    """Where it is, as a person would type it."""

    # What a backend writes -----------------------------------------------------------------------------

    @abstractmethod
    def _insert(self, items: Sequence[Item], what: What) -> None:
        """Write products that are not there yet, all or none; return when they are on disk."""

    @abstractmethod
    def _remove(self, ids: Sequence[str], what: What, reason: str) -> None:
        """Remove products, all or none, then payloads that nobody has any more."""

    @abstractmethod
    def _document(self, identifier: str) -> str | None:
        """Return the document of a product, None if it is not there."""

    @abstractmethod
    def _ids(self, prefix: str) -> list[str]:
        """Return ids that begin so, present or deleted, in order; at most ten."""

    @abstractmethod
    def _children(self, identifier: str) -> list[str]:
        """Return the products that were made from one."""

    @abstractmethod
    def _select(self, wanted: ProductQuery) -> Iterator[str]:
        """Give the documents of products, those that end last first, then by id; `latest` is obeyed."""

    @abstractmethod
    def read(self, identifier: str) -> Iterator[bytes]:
        """Give the bytes of a product, in pieces."""

    @abstractmethod
    def changes(self, since: int = 0, identifier: str = "") -> list[StoreEvent]:
        """Return what happened after an event's number, in order; of one product, or of all."""

    @abstractmethod
    def wait(self, seconds: float) -> bool:
        """Wait until somebody changed the store, or the time is over; tell whether somebody did."""

    @abstractmethod
    def _strays(self, sweep: bool) -> list[str]:
        """Return payloads that no product has, and remove them if asked."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()

    # What every store does -----------------------------------------------------------------------------

    def put(self, product: Product, content: bytes | Path) -> str:
        """Keep a product and return its id; when this returns it is on disk.

        Parameters
        ----------
        content : bytes or Path
            What `product.payload` describes.
        """
        self.put_many([(product, content)])
        return product.id

    def put_many(self, items: Sequence[Item]) -> list[str]:
        """Keep products, all or none, and return their ids; one that is there already is left as it is."""
        for product, content in items:
            if isinstance(content, bytes) and Payload.of(content, product.payload.format) != product.payload:
                raise StoreError(f"the bytes are not those of the {product.kind}", why="another hash or size")
        unique = {product.id: (product, content) for product, content in items}
        self._insert(list(unique.values()), "put")
        return [product.id for product, _ in items]

    def get(self, identifier: str) -> Product:
        """Return a product by its id, or by the first digits of it.

        Raises
        ------
        DeletedError
            That says why and when it was deleted.
        StoreError
            If there is none, or several begin so.
        """
        whole = self._whole(identifier)
        document = self._document(whole)
        if document is not None:
            return Product.from_document(document)
        raise DeletedError(
            f"the product {whole[:12]} was deleted", where=self.address, why=self._farewell(whole)
        )

    def content(self, identifier: str) -> bytes:
        """Return the bytes of a product."""
        return b"".join(self.read(self.get(identifier).id))

    def find(self, wanted: ProductQuery | None = None) -> list[Product]:
        """Return the products that fit, those that end last first."""
        return [Product.from_document(document) for document in self._select(wanted or ProductQuery())]

    def history(self, identifier: str) -> list[StoreEvent]:
        """Return what happened to a product, also to one that was deleted."""
        return self.changes(identifier=self._whole(identifier))

    def lineage(self, identifier: str) -> Lineage:
        """Return what a product was made from, and that from, and so on."""
        whole, known = self._whole(identifier), dict[str, Lineage]()
        pending: list[tuple[str, Product | None]] = [(whole, None)]
        above = set[str]()
        while pending:  # by hand: a chain may be longer than Python's stack
            each, product = pending[-1]
            if product is None and each not in known:
                if (product := self.look_up(each)) is None:
                    known[each] = Lineage(each, None, note=self._why_missing(each))
                else:
                    above.add(each)
                    pending[-1] = each, product
                    parents = product.provenance.parents
                    pending += [(p, None) for p in parents if p not in known and p not in above]
                    continue
            pending.pop()
            if product is not None and each not in known:
                known[each] = Lineage(each, product, tuple(self._parents(product, known)))
                above.discard(each)
        return known[whole]

    def look_up(self, identifier: str) -> Product | None:
        """Return the product with a whole id, None if it is not there."""
        document = self._document(identifier)
        return Product.from_document(document) if document is not None else None

    def _parents(self, product: Product, known: dict[str, Lineage]) -> Iterator[Lineage]:
        for parent in product.provenance.parents:
            # Only forged documents name their own children.
            yield known.get(parent) or Lineage(parent, self.look_up(parent), note="made from itself")

    def children(self, identifier: str) -> list[str]:
        """Return the ids of the products that were made from one."""
        return self._children(self._whole(identifier))

    def delete(self, identifier: str, reason: str) -> str:
        """Delete a product and return its id; the reason stays.

        Its children keep naming it, and `lineage` says that it was deleted.
        """
        if not reason.strip():
            raise UsageError("a product is deleted for a reason", hint="say which")
        whole = self.get(identifier).id
        self._remove([whole], "delete", reason)
        return whole

    def prune(self, policy: RetentionPolicy, reason: str = "pruned", dry_run: bool = False) -> list[Product]:
        """Remove what a policy lets go, and payloads that nobody has; return the products.

        What another product that stays was made from stays, too.
        """
        leaving = {product.id: product for product in self._disposable(policy)}
        for identifier in self._find_needed(leaving):
            leaving.pop(identifier)
        if leaving and not dry_run:
            self._remove(list(leaving), "prune", reason)
        if not dry_run:
            self._strays(sweep=True)
        return list(leaving.values())

    def merge(self, other: ProductStore) -> Merged:
        """Take over what another store has; what was deleted here stays deleted, damaged ones stay there."""
        found: dict[str, list[str]] = {"added": [], "known": [], "deleted": [], "damaged": []}
        batch: list[Item] = []
        for product in other.find():
            identifier = product.id
            if self._document(identifier) is not None:
                found["known"].append(identifier)
            elif self.changes(identifier=identifier):
                found["deleted"].append(identifier)
            elif (content := _whole_content(other, product)) is None:
                found["damaged"].append(identifier)
            else:
                found["added"].append(identifier)
                batch.append((product, content))
            if len(batch) == BATCH or sum(each.payload.size for each, _ in batch) > _MERGED_AT_ONCE:
                self._insert(batch, "merge")
                batch = []
        self._insert(batch, "merge")
        return Merged(**{name: tuple(ids) for name, ids in found.items()})

    def verify(self, sweep: bool = False) -> Verified:
        """Read every product, hash it again, and say what is wrong; `sweep` removes strays."""
        problems: list[tuple[str, str]] = []
        number = 0
        for document in self._select(ProductQuery()):
            number += 1
            product = Product.from_document(document)
            if self._document(product.id) is None:
                problems.append((product.id, "what it says was changed: its id is not the hash of it"))
            elif (wrong := _what_is_wrong(self, product)) is not None:
                problems.append((product.id, wrong))
        return Verified(number, tuple(problems), tuple(self._strays(sweep)))

    # Helpers -------------------------------------------------------------------------------------------

    def _whole(self, identifier: str) -> str:
        if len(identifier) < _SHORTEST_ID:
            hint = f"at least {_SHORTEST_ID} digits of its id"
            raise UsageError(f"{identifier!r} is too short to name a product", hint=hint)
        known = self._ids(identifier.lower())
        if len(known) == 1:
            return known[0]
        if known:
            hint = ", ".join(each[: len(identifier) + 4] for each in known)
            raise StoreError(f"several products begin with {identifier}", where=self.address, hint=hint)
        names = {product.name or product.kind for product in self.find(ProductQuery(latest=100))}
        hint = did_you_mean(identifier, names) or "look for it: transect products find"
        raise StoreError(f"there is no product {identifier}", where=self.address, hint=hint)

    def _farewell(self, identifier: str) -> str:
        from transect.base.clocks import iso_from_ns

        last = [event for event in self.changes(identifier=identifier) if event.what in ("delete", "prune")][
            -1
        ]
        return f"{last.what}d at {iso_from_ns(last.t_ns, 0)}: {last.reason}"

    def _why_missing(self, identifier: str) -> str:
        gone = any(event.what in ("delete", "prune") for event in self.changes(identifier=identifier))
        return self._farewell(identifier) if gone else "not in this store"

    def _disposable(self, policy: RetentionPolicy) -> Iterator[Product]:
        kept: dict[tuple[str, str, str], int] = {}
        for product in self.find():  # those that end last come first
            if product.kind not in policy.kinds if policy.kinds else product.kind == "Run":
                continue
            group = (product.kind, product.name, product.robot)
            kept[group] = kept.get(group, 0) + 1
            young = policy.keep_latest is not None and kept[group] <= policy.keep_latest
            late = policy.before_ns is not None and not _ended_before(product, policy.before_ns)
            good = policy.below is not None and (product.score or 0.0) >= policy.below
            if not (young or late or good):
                yield product

    def _find_needed(self, leaving: Iterable[str]) -> set[str]:
        """Return those of some products from which products that stay were made, directly or not."""
        leaving, needed = set(leaving), set[str]()
        pending = [each for each in leaving if any(child not in leaving for child in self._children(each))]
        while pending:
            identifier = pending.pop()
            if identifier in needed:
                continue
            needed.add(identifier)
            document = self._document(identifier)
            parents = Product.from_document(document).provenance.parents if document else ()
            pending += [parent for parent in parents if parent in leaving]
        return needed


_MERGED_AT_ONCE = 64 << 20
"""Bytes of payloads that a merge holds in memory."""


def now_ns() -> int:
    """Return the time of an event; results never depend on it."""
    return time.time_ns()


def _ended_before(product: Product, t_ns: int) -> bool:
    return product.t1_ns is not None and product.t1_ns < t_ns


def _whole_content(store: ProductStore, product: Product) -> bytes | None:
    try:
        content = b"".join(store.read(product.id))
    except StoreError:
        return None
    return content if Payload.of(content, product.payload.format) == product.payload else None


def _what_is_wrong(store: ProductStore, product: Product) -> str | None:
    from hashlib import sha256

    digest, size = sha256(), 0
    try:
        for piece in store.read(product.id):
            digest.update(piece)
            size += len(piece)
    except StoreError as error:
        return error.what
    if size != product.payload.size:
        return f"its payload has {size} bytes instead of {product.payload.size}"
    return None if digest.hexdigest() == product.payload.sha256 else "its payload has other bytes"
