"""A store in one GeoPackage, with larger payloads in a folder beside it; needs the standard library alone."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from transect.base.clocks import iso_from_ns

from . import schema
from .place import WGS84, Area, Place, Site, blob_of
from .product import Payload, Product
from .storage import Found, PayloadFolder, area_in_site, conditions, meets_on_earth, newest_first
from .store import Item, ProductQuery, ProductStore, StoreError, StoreEvent, What, now_ns

MAX_INLINE_BYTES = 4096  # of a payload that is stored inside the GeoPackage
_LOCK_TIMEOUT_S = 60.0  # wait for another process that writes
# Margin of R-tree queries: SQLite rounds bounds outwards, except numbers too small for a float32.
_RTREE_MARGIN = 1e-9
_NEWEST_FIRST = "p.t1_ns DESC NULLS LAST, p.id"


class GeoPackageStore(ProductStore):
    """Products in `NAME.gpkg`, payloads of more than 4 kB in `NAME.payloads/`.

    Several processes may read and write at once. A product is on disk when `put` returns: its payload first,
    then its row; a killed process leaves at most an orphaned payload, never half a product.
    """

    def __init__(self, path: Path | str, create: bool = True) -> None:
        path = Path(path)
        self.address = str(path)
        if not create and not path.is_file():
            hint = "transect run ... --store makes one"
            raise StoreError(f"there is no store {path}", where=self.address, hint=hint)
        self.payloads = PayloadFolder(path.with_suffix(".payloads"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S, isolation_level=None)
            self._open()
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"{path} cannot be opened as a store", where=self.address, why=str(error)
            ) from error

    def _open(self) -> None:
        db = self._db
        schema.register_functions(db)
        db.execute("PRAGMA synchronous = FULL")
        if db.execute("PRAGMA user_version").fetchone()[0] == 0 and not _tables(db):
            db.execute("PRAGMA journal_mode = WAL")
            with self._writing():
                if not _tables(db):  # another process may have been faster
                    schema.create_tables(db)
        if not {"products", "events", "parents", "gpkg_contents"} <= _tables(db):
            why = "it has no table of products"
            raise StoreError(f"{self.address} is not a store of products", where=self.address, why=why)
        self._seen = self._newest_event()

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """Hold the write lock; all changes are committed, or none."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk ends the transaction by itself
                    self._db.execute("ROLLBACK")
                raise
        except (sqlite3.Error, OSError) as error:
            why = str(error)
            raise StoreError("the store could not be written", where=self.address, why=why) from error

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        try:
            yield self._db
        except sqlite3.Error as error:
            hint = "transect products verify STORE says what is left"
            raise StoreError(
                "the store could not be read", where=self.address, why=str(error), hint=hint
            ) from error

    # Writing -------------------------------------------------------------------------------------------

    def _insert(self, items: Sequence[Item], what: What) -> None:
        staged = {product.id: self._stage(product, content) for product, content in items}
        try:
            with self._writing() as db:
                layers = _Layers(db)
                for product, _ in items:
                    if db.execute("SELECT 1 FROM products WHERE id = ?", (product.id,)).fetchone() is None:
                        self._write(layers, product, staged[product.id], what)
                layers.close()
        finally:
            for content in staged.values():
                if isinstance(content, Path):
                    content.unlink(missing_ok=True)  # still there if it was not needed

    def _stage(self, product: Product, content: bytes | Path) -> bytes | Path:
        if product.payload.size > MAX_INLINE_BYTES:
            return self.payloads.stage(content, product.payload)
        data = content if isinstance(content, bytes) else content.read_bytes()
        if Payload.of(data, product.payload.format) != product.payload:
            raise StoreError("the file is not what the product describes", where=str(content))
        return data

    def _write(self, layers: _Layers, product: Product, content: bytes | Path, what: What) -> None:
        if isinstance(content, Path):
            self.payloads.place(content, product.payload)
        db, place = layers.db, product.place
        layer, system = layers.find(place) if place else (None, 0)
        box = (place.box.x0, place.box.y0, place.box.x1, place.box.y1) if place else (None,) * 4
        row = db.execute(
            "INSERT INTO products (id, kind, name, robot, mission, frame, clock, t0_ns, t1_ns, score, layer, "
            "x0, y0, x1, y1, sha256, payload, document) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (product.id, product.kind, product.name, product.robot, product.mission, product.frame,
             product.clock, product.t0_ns, product.t1_ns, product.score, layer, *box,
             product.payload.sha256, content if isinstance(content, bytes) else None, product.document),
        ).lastrowid  # fmt: skip
        if place and layer:
            _write_feature(db, layer, row, product, blob_of(place, system))
        parents = [(product.id, parent) for parent in product.provenance.parents]
        db.executemany("INSERT OR IGNORE INTO parents (child, parent) VALUES (?, ?)", parents)
        _note(db, what, product.id)

    def _remove(self, ids: Sequence[str], what: What, reason: str) -> None:
        payloads: list[Payload] = []
        with self._writing() as db:
            for identifier in ids:
                found = db.execute(
                    "SELECT fid, layer, document FROM products WHERE id = ?", (identifier,)
                ).fetchone()
                if found is None:
                    continue
                number, layer, document = found
                payloads.append(Product.from_document(document).payload)
                db.execute("DELETE FROM products WHERE fid = ?", (number,))
                if layer:
                    db.execute(f'DELETE FROM "{layer}" WHERE fid = ?', (number,))
                db.execute("DELETE FROM parents WHERE child = ?", (identifier,))
                _note(db, what, identifier, reason)
        self._forget(payloads)

    def _forget(self, payloads: Sequence[Payload]) -> None:
        """Remove files of payloads that no product has.

        In a second step, so that a killed process leaves an orphan.
        """
        with self._writing() as db:
            for payload in payloads:
                if (
                    db.execute("SELECT 1 FROM products WHERE sha256 = ?", (payload.sha256,)).fetchone()
                    is None
                ):
                    self.payloads.remove(payload)

    def _orphans(self, sweep: bool) -> list[str]:
        with self._writing() as db:  # no payload is added meanwhile
            known = {row[0] for row in db.execute("SELECT sha256 FROM products WHERE payload IS NULL")}
            found = self.payloads.orphans(known)
            for path in found if sweep else ():
                path.unlink(missing_ok=True)
        return [str(path) for path in found]

    # Reading -------------------------------------------------------------------------------------------

    def _document(self, identifier: str) -> str | None:
        with self._reading() as db:
            found = db.execute("SELECT document FROM products WHERE id = ?", (identifier,)).fetchone()
        return found[0] if found else None

    def _ids(self, prefix: str) -> list[str]:
        end = prefix + "g"  # after every hexadecimal digit
        query = "SELECT id FROM {} WHERE id >= ? AND id < ?"
        text = f"{query.format('products')} UNION {query.format('events')} ORDER BY id LIMIT 10"
        with self._reading() as db:
            return [row[0] for row in db.execute(text, (prefix, end, prefix, end))]

    def _children(self, identifier: str) -> list[str]:
        query = "SELECT child FROM parents WHERE parent = ? ORDER BY child"
        with self._reading() as db:
            return [row[0] for row in db.execute(query, (identifier,))]

    def read(self, identifier: str) -> Iterator[bytes]:
        """Yield the bytes of a product, in pieces."""
        with self._reading() as db:
            query = "SELECT payload, document FROM products WHERE id = ?"
            found = db.execute(query, (identifier,)).fetchone()
        if found is None:
            raise StoreError(f"there is no product {identifier[:12]}", where=self.address)
        if found[0] is not None:
            yield bytes(found[0])
        else:
            yield from self.payloads.read(Product.from_document(found[1]).payload)

    def changes(self, since: int = 0, identifier: str = "") -> list[StoreEvent]:
        """Return the changes after an event's number, in order; of one product, or of all."""
        one = " AND id = ?" if identifier else ""
        query = f"SELECT number, t_ns, what, id, reason FROM events WHERE number > ?{one} ORDER BY number"
        with self._reading() as db:
            return [
                StoreEvent(*row) for row in db.execute(query, (since, identifier) if identifier else (since,))
            ]

    def wait(self, seconds: float) -> bool:
        """Wait for a change of the store or a timeout; return whether there was a change."""
        until = time.monotonic() + seconds
        while self._newest_event() == self._seen:
            if time.monotonic() >= until:
                return False
            time.sleep(min(0.05, seconds))
        self._seen = self._newest_event()
        return True

    def _newest_event(self) -> int:
        with self._reading() as db:
            return db.execute("SELECT coalesce(max(number), 0) FROM events").fetchone()[0]

    def _select(self, wanted: ProductQuery) -> Iterator[str]:
        clauses, values = conditions(wanted, "p.{} {} ?")
        limit = f" LIMIT {int(wanted.latest)}" if wanted.latest is not None else ""
        with self._reading() as db:
            if wanted.area is None:
                where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
                query = f"SELECT p.document FROM products AS p{where} ORDER BY {_NEWEST_FIRST}{limit}"
                rows = (row[0] for row in db.execute(query, values))
            else:
                rows = self._select_in(wanted.area, clauses, values, wanted.latest)
            yield from rows

    def _select_in(
        self, area: Area, clauses: Sequence[str], values: Sequence[Any], latest: int | None
    ) -> Iterator[str]:
        """Yield documents of products in an area: coarsely by the R-trees, then exactly."""
        found: list[Found] = []
        for layer, site in self._layers(area.crs):
            box = area if site is None else area_in_site(area, site)
            if box is None:
                continue
            exactly = "" if site else " AND p.x1 >= ? AND p.x0 <= ? AND p.y1 >= ? AND p.y0 <= ?"
            edges = (box.x0, box.x1, box.y0, box.y1)
            coarse = (
                box.x0 - _RTREE_MARGIN,
                box.x1 + _RTREE_MARGIN,
                box.y0 - _RTREE_MARGIN,
                box.y1 + _RTREE_MARGIN,
            )
            query = (
                # CROSS JOIN: the R-tree first. The planner would begin with the time, 3,000 times as slow.
                f'SELECT p.t1_ns, p.id, p.document FROM "rtree_{layer}_geom" AS r CROSS JOIN products AS p '
                "ON p.fid = r.id WHERE r.maxx >= ? AND r.minx <= ? AND r.maxy >= ? AND r.miny <= ?"
                f"{exactly}{''.join(f' AND {clause}' for clause in clauses)}"
            )
            rows = self._db.execute(query, (*coarse, *(edges if exactly else ()), *values))
            found += [row for row in rows if site is None or meets_on_earth(area, site, row[2])]
        yield from newest_first(found, latest)

    def _layers(self, crs: str) -> list[tuple[str, Site | None]]:
        """Return the layers to search, with the site if the area must be transformed to its frame."""
        query = (
            "SELECT table_name, srs_name, description "
            "FROM gpkg_geometry_columns NATURAL JOIN gpkg_spatial_ref_sys"
        )
        layers: list[tuple[str, Site | None]] = []
        for table, name, description in self._db.execute(query):
            if name == crs:
                layers.append((table, None))
            elif crs == WGS84 and name.startswith("site:") and description:
                layers.append((table, schema.site_from(name, description)))
        return layers

    def close(self) -> None:
        """Close the store; the last connection leaves a single file, without a write-ahead log."""
        self._db.close()


def _tables(db: sqlite3.Connection) -> set[str]:
    return {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _note(db: sqlite3.Connection, what: What, identifier: str, reason: str = "") -> None:
    row = (now_ns(), what, identifier, reason)
    db.execute("INSERT INTO events (t_ns, what, id, reason) VALUES (?, ?, ?, ?)", row)


class _Layers:
    """The layers of the products of one transaction, and their bounding boxes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._known: dict[tuple[str, str, Site | None], tuple[str, int]] = {}
        self._boxes: dict[str, tuple[float, float, float, float]] = {}

    def find(self, place: Place) -> tuple[str, int]:
        """Return the layer of a place, and the number of its coordinate system."""
        key = (place.shape, place.crs, place.site)
        if key not in self._known:
            system = schema.find_system(self.db, place)
            self._known[key] = (schema.find_layer(self.db, place, system), system)
        layer, system = self._known[key]
        box = place.box
        x0, y0, x1, y1 = self._boxes.get(layer, (box.x0, box.y0, box.x1, box.y1))
        self._boxes[layer] = (min(x0, box.x0), min(y0, box.y0), max(x1, box.x1), max(y1, box.y1))
        return layer, system

    def close(self) -> None:
        """Update the bounding boxes of the layers, which GIS programs need."""
        for layer, box in self._boxes.items():
            self.db.execute(
                "UPDATE gpkg_contents SET min_x = min(coalesce(min_x, ?1), ?1), "
                "min_y = min(coalesce(min_y, ?2), ?2), max_x = max(coalesce(max_x, ?3), ?3), "
                "max_y = max(coalesce(max_y, ?4), ?4) WHERE table_name = ?5", (*box, layer),
            )  # fmt: skip


def _write_feature(
    db: sqlite3.Connection, layer: str, number: int | None, product: Product, geometry: bytes
) -> None:
    times = [
        None if t is None or product.clock != "utc" else _moment(t) for t in (product.t0_ns, product.t1_ns)
    ]
    db.execute(
        f'INSERT INTO "{layer}" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
        (number, geometry, product.id, product.kind, product.name, product.robot, product.mission, *times,
         product.score),
    )  # fmt: skip


def _moment(t_ns: int) -> str:
    return f"{iso_from_ns(t_ns)}Z"
