"""A store in a PostgreSQL database with PostGIS: several robots and operators write and read it at once."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.errors import MissingExtraError

from .place import WGS84, Area, Place, Site, wkb_of
from .product import Payload, Product
from .storage import Found, area_in_site, conditions, meets_on_earth, newest_first, pieces_of
from .store import Item, ProductQuery, ProductStore, StoreError, StoreEvent, What, now_ns

if TYPE_CHECKING:
    import psycopg

PIECE_BYTES = 8 << 20  # of a payload in one row
ROLES = {
    "transect_reader": "SELECT",
    "transect_writer": "SELECT, INSERT",
    "transect_pruner": "SELECT, INSERT, DELETE",
}
"""What members of a role may do to the tables."""
_TABLE_NAMES = "products, payloads, pieces, sites, parents, events"
CHANNEL = "transect_products"
_LOCK_KEY = 0x7472616E73656374
"""One transaction at a time enters rows, so that events are seen in the order of their numbers."""

TABLES = """
CREATE TABLE IF NOT EXISTS payloads (sha256 text PRIMARY KEY, size bigint NOT NULL);
CREATE TABLE IF NOT EXISTS pieces (
  sha256 text NOT NULL REFERENCES payloads ON DELETE CASCADE, number integer NOT NULL, bytes bytea NOT NULL,
  PRIMARY KEY (sha256, number));
CREATE TABLE IF NOT EXISTS products (
  id text COLLATE "C" PRIMARY KEY, kind text NOT NULL, name text NOT NULL, robot text NOT NULL,
  mission text NOT NULL, frame text NOT NULL, clock text NOT NULL, t0_ns bigint, t1_ns bigint,
  score double precision, crs text, x0 double precision, y0 double precision, x1 double precision,
  y1 double precision, geom geometry, sha256 text NOT NULL REFERENCES payloads, document text NOT NULL);
CREATE INDEX IF NOT EXISTS products_by_time ON products (kind, t1_ns);
CREATE INDEX IF NOT EXISTS products_by_end ON products (t1_ns DESC NULLS LAST, id);
CREATE INDEX IF NOT EXISTS products_by_place ON products USING gist (geom);
CREATE INDEX IF NOT EXISTS products_by_payload ON products (sha256);
CREATE TABLE IF NOT EXISTS sites (
  crs text, longitude double precision, latitude double precision, body text,
  PRIMARY KEY (crs, longitude, latitude, body));
CREATE TABLE IF NOT EXISTS parents (
  child text COLLATE "C", parent text COLLATE "C", PRIMARY KEY (child, parent));
CREATE INDEX IF NOT EXISTS parents_by_parent ON parents (parent);
CREATE TABLE IF NOT EXISTS events (
  number bigserial PRIMARY KEY, t_ns bigint NOT NULL, what text NOT NULL, id text COLLATE "C" NOT NULL,
  reason text NOT NULL);
CREATE INDEX IF NOT EXISTS events_by_id ON events (id);
"""


class PostgisStore(ProductStore):
    """Products, their payloads and what happened to them, in the tables of one database.

    Parameters
    ----------
    address : str
        `postgresql://user@host/database`; the extension PostGIS must be there, or may be created.
    create : bool
        Make the tables if they are not there.
    """

    def __init__(self, address: str, create: bool = True) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError("psycopg", "postgis") from None
        self.address = _without_password(address)
        try:
            self._db = psycopg.connect(address, autocommit=True)
        except psycopg.Error as error:
            why = str(error).strip()
            raise StoreError(
                f"{self.address} cannot be opened as a store", where=self.address, why=why
            ) from error
        try:
            if create:
                self._create_tables()
            elif self._one("SELECT to_regclass('products')") is None:
                raise StoreError(
                    f"{self.address} has no products", hint="transect run ... --store makes the tables"
                )
            self._db.execute(f"LISTEN {CHANNEL}")
        except BaseException as error:
            self._db.close()
            if not isinstance(error, psycopg.Error):
                raise
            why = str(error).strip()
            raise StoreError(
                f"{self.address} cannot be opened as a store", where=self.address, why=why
            ) from error

    def _create_tables(self) -> None:
        if self._one("SELECT to_regclass('events')") is not None:
            return
        with self._writing() as db:
            db.execute("CREATE EXTENSION IF NOT EXISTS postgis")
            db.execute(TABLES)

    def create_roles(self) -> None:
        """Make the roles for reading, writing and pruning; who may do that is the server's to say."""
        with self._writing() as db:
            for role, rights in ROLES.items():
                if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
                    db.execute(f"CREATE ROLE {role} NOLOGIN".encode())
                db.execute(f"GRANT {rights} ON {_TABLE_NAMES} TO {role}".encode())
                if "INSERT" in rights:
                    db.execute(f"GRANT USAGE ON SEQUENCE events_number_seq TO {role}".encode())

    @contextmanager
    def _writing(self) -> Generator[psycopg.Connection]:
        """Write all of it, or nothing."""
        import psycopg

        try:
            with self._db.transaction():
                yield self._db
        except psycopg.Error as error:
            why = str(error).strip()
            raise StoreError("the store could not be written", where=self.address, why=why) from error

    @contextmanager
    def _reading(self) -> Generator[psycopg.Connection]:
        import psycopg

        try:
            yield self._db
        except psycopg.Error as error:
            why = str(error).strip()
            raise StoreError("the store could not be read", where=self.address, why=why) from error

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._reading() as db:
            return db.execute(query.encode(), values).fetchall()

    def _one(self, query: str, *values: Any) -> Any:
        rows = self._rows(query, *values)
        return rows[0][0] if rows else None

    # Writing -------------------------------------------------------------------------------------------

    def _insert(self, items: Sequence[Item], what: What) -> None:
        with self._writing() as db:
            for product, content in items:
                _upload(db, product.payload, content)
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK_KEY,))
            ids = [product.id for product, _ in items]
            found = db.execute("SELECT id FROM products WHERE id = ANY(%s)", (ids,)).fetchall()
            known = {row[0] for row in found}
            new = [(product, content) for product, content in items if product.id not in known]
            for product, content in new:  # whoever held the lock before may have removed it meanwhile
                _upload(db, product.payload, content)
            _enter(db, [product for product, _ in new])
            _note(db, what, [product.id for product, _ in new])

    def _remove(self, ids: Sequence[str], what: What, reason: str) -> None:
        with self._writing() as db:
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK_KEY,))
            deleted = db.execute(
                "DELETE FROM products WHERE id = ANY(%s) RETURNING id, sha256", (list(ids),)
            ).fetchall()
            db.execute("DELETE FROM parents WHERE child = ANY(%s)", ([row[0] for row in deleted],))
            payloads = [row[1] for row in deleted]
            db.execute(f"DELETE FROM payloads WHERE sha256 = ANY(%s) AND {_ALONE}".encode(), (payloads,))
            removed = {row[0] for row in deleted}
            _note(db, what, [each for each in ids if each in removed], reason)

    def _orphans(self, sweep: bool) -> list[str]:
        found = [row[0] for row in self._rows(f"SELECT sha256 FROM payloads WHERE {_ALONE} ORDER BY sha256")]
        if found and sweep:
            with self._writing() as db:
                db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK_KEY,))
                db.execute(f"DELETE FROM payloads WHERE {_ALONE}".encode())
        return found

    # Reading -------------------------------------------------------------------------------------------

    def _document(self, identifier: str) -> str | None:
        return self._one("SELECT document FROM products WHERE id = %s", identifier)

    def _ids(self, prefix: str) -> list[str]:
        query = "SELECT id FROM {} WHERE id >= %s AND id < %s"
        text = f"{query.format('products')} UNION {query.format('events')} ORDER BY id LIMIT 10"
        return [row[0] for row in self._rows(text, prefix, prefix + "g", prefix, prefix + "g")]

    def _children(self, identifier: str) -> list[str]:
        return [
            row[0]
            for row in self._rows("SELECT child FROM parents WHERE parent = %s ORDER BY child", identifier)
        ]

    def read(self, identifier: str) -> Iterator[bytes]:
        """Give the bytes of a product, in pieces."""
        payload = self._one("SELECT sha256 FROM products WHERE id = %s", identifier)
        if payload is None:
            raise StoreError(f"there is no product {identifier[:12]}", where=self.address)
        number = 0
        while (piece := self._one(_PIECE_BYTES_OF, payload, number)) is not None:
            yield bytes(piece)
            number += 1

    def changes(self, since: int = 0, identifier: str = "") -> list[StoreEvent]:
        """Return what happened after an event's number, in order; of one product, or of all."""
        query = (
            "SELECT number, t_ns, what, id, reason FROM events WHERE number > %s AND (%s = '' OR id = %s) "
            "ORDER BY number"
        )
        return [StoreEvent(*row) for row in self._rows(query, since, identifier, identifier)]

    def wait(self, seconds: float) -> bool:
        """Wait for a change of the store or a timeout; return whether there was a change."""
        with self._reading() as db:
            return any(True for _ in db.notifies(timeout=seconds, stop_after=1))

    def _select(self, wanted: ProductQuery) -> Iterator[str]:
        clauses, values = conditions(wanted, "{} {} %s")
        if wanted.area is not None:
            yield from self._select_in(wanted.area, clauses, values, wanted.latest)
            return
        where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
        limit = f" LIMIT {int(wanted.latest)}" if wanted.latest is not None else ""
        query = f"SELECT document FROM products{where} ORDER BY t1_ns DESC NULLS LAST, id{limit}"
        with self._reading() as db, db.transaction(), db.cursor("products") as cursor:
            cursor.execute(query.encode(), values)
            yield from (row[0] for row in cursor)

    def _select_in(
        self, area: Area, clauses: Sequence[str], values: Sequence[Any], latest: int | None
    ) -> Iterator[str]:
        """Give documents of products in an area: by the index, which is coarse, then exactly."""
        found: list[Found] = []
        for crs, site in self._systems(area.crs):
            box = area if site is None else area_in_site(area, site)
            if box is None:
                continue
            exactly = "" if site else " AND x1 >= %s AND x0 <= %s AND y1 >= %s AND y0 <= %s"
            edges = (box.x0, box.x1, box.y0, box.y1) if exactly else ()
            query = (
                "SELECT t1_ns, id, document FROM products WHERE geom && ST_MakeEnvelope(%s, %s, %s, %s, %s) "
                f"AND crs = %s{exactly}{''.join(f' AND {clause}' for clause in clauses)}"
            )
            corners = (box.x0, box.y0, box.x1, box.y1, _srid(crs))
            rows = self._rows(query, *corners, crs, *edges, *values)
            found += [(*row,) for row in rows if site is None or meets_on_earth(area, site, row[2])]
        yield from newest_first(found, latest)

    def _systems(self, crs: str) -> list[tuple[str, Site | None]]:
        """Return the coordinate systems to look into, with the site where the area must be brought there."""
        systems: list[tuple[str, Site | None]] = [(crs, None)]
        if crs == WGS84:
            for name, *origin, body in self._rows(
                "SELECT crs, longitude, latitude, body FROM sites ORDER BY crs"
            ):
                systems.append((name, Site(name.removeprefix("site:"), origin[0], origin[1], body)))
        return systems

    def close(self) -> None:
        """Let go of it."""
        self._db.close()


_ALONE = "NOT EXISTS (SELECT 1 FROM products WHERE products.sha256 = payloads.sha256)"
_PIECE_BYTES_OF = "SELECT bytes FROM pieces WHERE sha256 = %s AND number = %s"


def _srid(crs: str) -> int:
    """Return PostGIS's number of a coordinate system; sites and other bodies have none."""
    return 4326 if crs == WGS84 else 0


def _upload(db: psycopg.Connection, payload: Payload, content: bytes | Path) -> None:
    """Write a payload, unless it is there."""
    entered = db.execute(
        "INSERT INTO payloads VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING 1",
        (payload.sha256, payload.size),
    ).fetchone()
    if entered is None:
        return
    if isinstance(content, Path) and Payload.of(content, payload.format) != payload:
        raise StoreError("the file is not what the product describes", where=str(content))
    for number, piece in enumerate(pieces_of(content, PIECE_BYTES)):
        db.execute("INSERT INTO pieces VALUES (%s, %s, %s)", (payload.sha256, number, piece))


def _enter(db: psycopg.Connection, products: Sequence[Product]) -> None:
    """Enter the rows of products whose payloads are there."""
    with db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO products VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,"
            "ST_GeomFromWKB(%s, %s),%s,%s)", [_row(product) for product in products],
        )  # fmt: skip
        parents = [(product.id, parent) for product in products for parent in product.provenance.parents]
        cursor.executemany("INSERT INTO parents VALUES (%s, %s) ON CONFLICT DO NOTHING", parents)
        places = (product.place for product in products)
        sites = {place.site for place in places if place and place.site and place.site.origin}
        rows = [(site.crs, site.longitude, site.latitude, site.body) for site in sites]
        cursor.executemany("INSERT INTO sites VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", rows)


def _row(product: Product) -> tuple[Any, ...]:
    place: Place | None = product.place
    box = (place.box.x0, place.box.y0, place.box.x1, place.box.y1) if place else (None,) * 4
    geometry = (wkb_of(place), _srid(place.crs)) if place else (None, 0)
    return (
        product.id, product.kind, product.name, product.robot, product.mission, product.frame, product.clock,
        product.t0_ns, product.t1_ns, product.score, place.crs if place else None, *box, *geometry,
        product.payload.sha256, product.document,
    )  # fmt: skip


def _note(db: psycopg.Connection, what: What, ids: Sequence[str], reason: str = "") -> None:
    """Enter what happened, and tell whoever listens when the transaction is kept."""
    rows = [(now_ns(), what, identifier, reason) for identifier in ids]
    with db.cursor() as cursor:
        cursor.executemany("INSERT INTO events (t_ns, what, id, reason) VALUES (%s, %s, %s, %s)", rows)
    if rows:
        db.execute("SELECT pg_notify(%s, %s)", (CHANNEL, what))


def _without_password(address: str) -> str:
    """Return an address that may be shown."""
    head, at, tail = address.rpartition("@")
    scheme, slashes, user = head.partition("://")
    return f"{scheme}{slashes}{user.split(':')[0]}{at}{tail}" if at else address
