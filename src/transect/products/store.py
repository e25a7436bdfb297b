"""Interface of a store of products: put, find, lineage, delete, merge, verify."""

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
Item = tuple[Product, bytes | Path]  # a product, and its bytes or the file that has them
MAX_BATCH_PRODUCTS = 1000  # merged in one transaction
MAX_BATCH_BYTES = 64 << 20  # payloads that a merge holds in memory
MIN_ID_DIGITS = 6  # of an abbreviated id


class StoreError(TransectError):
    """A store that cannot be opened, read or written, or a product that is not in it."""


class DeletedError(StoreError):
    """A product that was deleted; `why` says when and for which reason."""


@dataclass(frozen=True)
class ProductQuery:
    """Constraints on products; None is no constraint."""

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
    min_quality: float | None = None  # minimum score; products without one are left out
    latest: int | None = None  # maximum number of products: those that end last

    @property
    def words(self) -> dict[str, str]:
        """The columns that must be equal, and their values."""
        named = {name: getattr(self, name) for name in ("kind", "name", "robot", "mission", "frame")}
        stated = {name: value for name, value in named.items() if value is not None}
        return stated | ({"clock": self.clock} if self.time is not None else {})


@dataclass(frozen=True)
class StoreEvent:
    """A change of a store: time (ns since 1970, clock of the writer), kind, product and reason."""

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
        """Yield (depth, product, whether it is the first occurrence), each product's parents once."""
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
        """The product and all its ancestors, each once."""
        return [one for _, one, is_first in self.walk() if is_first]


@dataclass(frozen=True)
class RetentionPolicy:
    """Products that pruning removes: those that meet all conditions, at least one of which must be set."""

    kinds: tuple[str, ...] = ()  # only these; () means all except runs, which are parents of others
    before_ns: int | None = None  # products that ended before this time
    keep_latest: int | None = (
        None  # number of products of each kind, name and robot that stay: those that end last
    )
    below: float | None = None  # products with a smaller score, or none

    def __post_init__(self) -> None:
        if self.before_ns is None and self.keep_latest is None and self.below is None:
            hint = "an age, how many to keep, or a quality"
            raise UsageError("a policy without conditions would remove everything", hint=hint)


@dataclass(frozen=True)
class Merged:
    """Result of a merge: ids that were added, known, deleted in this store, and damaged in the other."""

    added: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verified:
    """Result of the verification of a store."""

    products: int  # that were looked at
    problems: tuple[tuple[str, str], ...] = ()  # the product's id, and what is wrong with it
    # Payloads that no product has; they were removed if `sweep` was asked for
    orphans: tuple[str, ...] = field(default=())


class ProductStore(ABC):
    """A store of products. Use it in a `with` block, or call `close`."""

    address: str  # as on the command line

    # Implemented by backends -----------------------------------------------------------------------------

    @abstractmethod
    def _insert(self, items: Sequence[Item], what: What) -> None:
        """Write new products, all or none; return when they are on disk."""

    @abstractmethod
    def _remove(self, ids: Sequence[str], what: What, reason: str) -> None:
        """Remove products, all or none, then payloads without products."""

    @abstractmethod
    def _document(self, identifier: str) -> str | None:
        """Return the document of a product, None if it is not in the store."""

    @abstractmethod
    def _ids(self, prefix: str) -> list[str]:
        """Return the first ten ids with a prefix, including those of deleted products."""

    @abstractmethod
    def _children(self, identifier: str) -> list[str]:
        """Return the products that were made from one."""

    @abstractmethod
    def _select(self, wanted: ProductQuery) -> Iterator[str]:
        """Yield the documents of at most `latest` products, those that end last first, then by id."""

    @abstractmethod
    def read(self, identifier: str) -> Iterator[bytes]:
        """Yield the bytes of a product, in pieces."""

    @abstractmethod
    def changes(self, since: int = 0, identifier: str = "") -> list[StoreEvent]:
        """Return the changes after an event's number, in order; of one product, or of all."""

    @abstractmethod
    def wait(self, seconds: float) -> bool:
        """Wait for a change of the store or a timeout; return whether there was a change."""

    @abstractmethod
    def _orphans(self, sweep: bool) -> list[str]:
        """Return payloads without a product, and remove them if `sweep`."""

    @abstractmethod
    def close(self) -> None:
        """Close the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()

    # Common to all stores -----------------------------------------------------------------------------

    def put(self, product: Product, content: bytes | Path) -> str:
        """Store a product and return its id; it is on disk then.

        Parameters
        ----------
        content : bytes or Path
            The bytes that `product.payload` describes.
        """
        self.put_many([(product, content)])
        return product.id

    def put_many(self, items: Sequence[Item]) -> list[str]:
        """Store products, all or none, and return their ids; existing ones are unchanged."""
        for product, content in items:
            if isinstance(content, bytes) and Payload.of(content, product.payload.format) != product.payload:
                raise StoreError(f"the bytes are not those of the {product.kind}", why="another hash or size")
        unique = {product.id: (product, content) for product, content in items}
        self._insert(list(unique.values()), "put")
        return [product.id for product, _ in items]

    def get(self, identifier: str) -> Product:
        """Return a product by its id or an unambiguous abbreviation.

        Raises
        ------
        DeletedError
            If it was deleted; states when and why.
        StoreError
            If there is none, or several match.
        """
        full_id = self._whole(identifier)
        document = self._document(full_id)
        if document is not None:
            return Product.from_document(document)
        raise DeletedError(
            f"the product {full_id[:12]} was deleted",
            where=self.address,
            why=self._describe_deletion(full_id),
        )

    def content(self, identifier: str) -> bytes:
        """Return the bytes of a product."""
        return b"".join(self.read(self.get(identifier).id))

    def find(self, wanted: ProductQuery | None = None) -> list[Product]:
        """Return matching products, those that end last first."""
        return [Product.from_document(document) for document in self._select(wanted or ProductQuery())]

    def history(self, identifier: str) -> list[StoreEvent]:
        """Return the changes of a product, which may have been deleted."""
        return self.changes(identifier=self._whole(identifier))

    def lineage(self, identifier: str) -> Lineage:
        """Return the graph of everything that a product was made from."""
        full_id, known = self._whole(identifier), dict[str, Lineage]()
        pending: list[tuple[str, Product | None]] = [(full_id, None)]
        ancestors = set[str]()
        while pending:  # iterative: a chain may be longer than Python's stack
            each, product = pending[-1]
            if product is None and each not in known:
                if (product := self.look_up(each)) is None:
                    known[each] = Lineage(each, None, note=self._why_missing(each))
                else:
                    ancestors.add(each)
                    pending[-1] = each, product
                    parents = product.provenance.parents
                    pending += [(p, None) for p in parents if p not in known and p not in ancestors]
                    continue
            pending.pop()
            if product is not None and each not in known:
                known[each] = Lineage(each, product, tuple(self._parents(product, known)))
                ancestors.discard(each)
        return known[full_id]

    def look_up(self, identifier: str) -> Product | None:
        """Return the product with a full id, None if it is not in the store."""
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
        """Delete a product and return its id; the reason is recorded.

        Its children keep their reference to it, and `lineage` states that it was deleted.
        """
        if not reason.strip():
            raise UsageError("a product is deleted for a reason", hint="give one")
        full_id = self.get(identifier).id
        self._remove([full_id], "delete", reason)
        return full_id

    def prune(self, policy: RetentionPolicy, reason: str = "pruned", dry_run: bool = False) -> list[Product]:
        """Remove the products that a policy selects, and orphaned payloads; return the products.

        Ancestors of remaining products remain, too.
        """
        removable = {product.id: product for product in self._disposable(policy)}
        for identifier in self._find_needed(removable):
            removable.pop(identifier)
        if removable and not dry_run:
            self._remove(list(removable), "prune", reason)
        if not dry_run:
            self._orphans(sweep=True)
        return list(removable.values())

    def merge(self, other: ProductStore) -> Merged:
        """Copy the products of another store, except those deleted in this one and damaged ones."""
        found: dict[str, list[str]] = {"added": [], "known": [], "deleted": [], "damaged": []}
        batch: list[Item] = []
        for product in other.find():
            identifier = product.id
            if self._document(identifier) is not None:
                found["known"].append(identifier)
            elif self.changes(identifier=identifier):
                found["deleted"].append(identifier)
            elif (content := _intact_content(other, product)) is None:
                found["damaged"].append(identifier)
            else:
                found["added"].append(identifier)
                batch.append((product, content))
            if (
                len(batch) == MAX_BATCH_PRODUCTS
                or sum(each.payload.size for each, _ in batch) > MAX_BATCH_BYTES
            ):
                self._insert(batch, "merge")
                batch = []
        self._insert(batch, "merge")
        return Merged(**{name: tuple(ids) for name, ids in found.items()})

    def verify(self, sweep: bool = False) -> Verified:
        """Read and hash every product, and return the problems; `sweep` removes orphaned payloads."""
        problems: list[tuple[str, str]] = []
        number = 0
        for document in self._select(ProductQuery()):
            number += 1
            product = Product.from_document(document)
            if self._document(product.id) is None:
                problems.append((product.id, "its document was changed: the id is not its hash"))
            elif (wrong := _damage_of(self, product)) is not None:
                problems.append((product.id, wrong))
        return Verified(number, tuple(problems), tuple(self._orphans(sweep)))

    # Helpers -------------------------------------------------------------------------------------------

    def _whole(self, identifier: str) -> str:
        if len(identifier) < MIN_ID_DIGITS:
            hint = f"at least {MIN_ID_DIGITS} digits of its id"
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

    def _describe_deletion(self, identifier: str) -> str:
        from transect.base.clocks import iso_from_ns

        last = [event for event in self.changes(identifier=identifier) if event.what in ("delete", "prune")][
            -1
        ]
        return f"{last.what}d at {iso_from_ns(last.t_ns, 0)}: {last.reason}"

    def _why_missing(self, identifier: str) -> str:
        is_deleted = any(event.what in ("delete", "prune") for event in self.changes(identifier=identifier))
        return self._describe_deletion(identifier) if is_deleted else "not in this store"

    def _disposable(self, policy: RetentionPolicy) -> Iterator[Product]:
        count_of: dict[tuple[str, str, str], int] = {}
        for product in self.find():  # those that end last come first
            if product.kind not in policy.kinds if policy.kinds else product.kind == "Run":
                continue
            group = (product.kind, product.name, product.robot)
            count_of[group] = count_of.get(group, 0) + 1
            is_recent = policy.keep_latest is not None and count_of[group] <= policy.keep_latest
            is_late = policy.before_ns is not None and not _ended_before(product, policy.before_ns)
            is_good = policy.below is not None and (product.score or 0.0) >= policy.below
            if not (is_recent or is_late or is_good):
                yield product

    def _find_needed(self, removable: Iterable[str]) -> set[str]:
        """Return which of some products are ancestors of products that remain."""
        removable, needed = set(removable), set[str]()
        pending = [
            each for each in removable if any(child not in removable for child in self._children(each))
        ]
        while pending:
            identifier = pending.pop()
            if identifier in needed:
                continue
            needed.add(identifier)
            document = self._document(identifier)
            parents = Product.from_document(document).provenance.parents if document else ()
            pending += [parent for parent in parents if parent in removable]
        return needed


def now_ns() -> int:
    """Return the time of an event; results never depend on it."""
    return time.time_ns()


def _ended_before(product: Product, t_ns: int) -> bool:
    return product.t1_ns is not None and product.t1_ns < t_ns


def _intact_content(store: ProductStore, product: Product) -> bytes | None:
    try:
        content = b"".join(store.read(product.id))
    except StoreError:
        return None
    return content if Payload.of(content, product.payload.format) == product.payload else None


def _damage_of(store: ProductStore, product: Product) -> str | None:
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
