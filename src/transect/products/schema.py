"""The tables of a GeoPackage (OGC 12-128r15, version 1.3) that holds products, so that GIS programs open it.

Tables of products are `attributes`; each coordinate system has up to three layers of `features` (tracks,
footprints, points) with an R-tree, whose rows have the number of the product.
"""

from __future__ import annotations

import re
import sqlite3

from .place import WGS84, Place, Shape, Site, box_of_blob, wkt_of

APPLICATION_ID, USER_VERSION = 0x47504B47, 10300
FIRST_SITE = 100001
"""Number of the first coordinate system of our own."""
LAYERS: dict[Shape, str] = {"Point": "points", "LineString": "tracks", "Polygon": "footprints"}
_LAST_CHANGE = "2000-01-01T00:00:00.000Z"
"""GeoPackage wants one; `events` has the real ones, and equal stores are to have equal bytes."""

TABLES = """
CREATE TABLE gpkg_spatial_ref_sys (
  srs_name TEXT NOT NULL, srs_id INTEGER NOT NULL PRIMARY KEY, organization TEXT NOT NULL,
  organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
CREATE TABLE gpkg_contents (
  table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE,
  description TEXT DEFAULT '', last_change DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER,
  CONSTRAINT fk_gc_r_srs_id FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE gpkg_geometry_columns (
  table_name TEXT NOT NULL, column_name TEXT NOT NULL, geometry_type_name TEXT NOT NULL,
  srs_id INTEGER NOT NULL, z TINYINT NOT NULL, m TINYINT NOT NULL,
  CONSTRAINT pk_geom_cols PRIMARY KEY (table_name, column_name),
  CONSTRAINT uk_gc_table_name UNIQUE (table_name),
  CONSTRAINT fk_gc_tn FOREIGN KEY (table_name) REFERENCES gpkg_contents(table_name),
  CONSTRAINT fk_gc_srs FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys (srs_id));
CREATE TABLE gpkg_extensions (
  table_name TEXT, column_name TEXT, extension_name TEXT NOT NULL, definition TEXT NOT NULL,
  scope TEXT NOT NULL, CONSTRAINT ge_tce UNIQUE (table_name, column_name, extension_name));
CREATE TABLE products (
  fid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, name TEXT NOT NULL,
  robot TEXT NOT NULL, mission TEXT NOT NULL, frame TEXT NOT NULL, clock TEXT NOT NULL, t0_ns INTEGER,
  t1_ns INTEGER, score DOUBLE, layer TEXT, x0 DOUBLE, y0 DOUBLE, x1 DOUBLE, y1 DOUBLE,
  sha256 TEXT NOT NULL, payload BLOB, document TEXT NOT NULL);
CREATE INDEX products_by_time ON products (kind, t1_ns);
CREATE INDEX products_by_end ON products (t1_ns);
CREATE INDEX products_by_payload ON products (sha256);
CREATE TABLE parents (
  number INTEGER PRIMARY KEY, child TEXT NOT NULL, parent TEXT NOT NULL, UNIQUE (child, parent));
CREATE INDEX parents_by_parent ON parents (parent);
CREATE TABLE events (
  number INTEGER PRIMARY KEY AUTOINCREMENT, t_ns INTEGER NOT NULL, what TEXT NOT NULL, id TEXT NOT NULL,
  reason TEXT NOT NULL);
CREATE INDEX events_by_id ON events (id);
"""

_RTREE = """
CREATE VIRTUAL TABLE "rtree_{t}_geom" USING rtree(id, minx, maxx, miny, maxy);
CREATE TRIGGER "rtree_{t}_geom_insert" AFTER INSERT ON "{t}"
  WHEN (new."geom" NOT NULL AND NOT ST_IsEmpty(NEW."geom"))
BEGIN
  INSERT OR REPLACE INTO "rtree_{t}_geom" VALUES (NEW."fid", {box});
END;
CREATE TRIGGER "rtree_{t}_geom_update1" AFTER UPDATE OF "geom" ON "{t}"
  WHEN OLD."fid" = NEW."fid" AND (NEW."geom" NOTNULL AND NOT ST_IsEmpty(NEW."geom"))
BEGIN
  INSERT OR REPLACE INTO "rtree_{t}_geom" VALUES (NEW."fid", {box});
END;
CREATE TRIGGER "rtree_{t}_geom_update2" AFTER UPDATE OF "geom" ON "{t}"
  WHEN OLD."fid" = NEW."fid" AND (NEW."geom" ISNULL OR ST_IsEmpty(NEW."geom"))
BEGIN
  DELETE FROM "rtree_{t}_geom" WHERE id = OLD."fid";
END;
CREATE TRIGGER "rtree_{t}_geom_update3" AFTER UPDATE ON "{t}"
  WHEN OLD."fid" != NEW."fid" AND (NEW."geom" NOTNULL AND NOT ST_IsEmpty(NEW."geom"))
BEGIN
  DELETE FROM "rtree_{t}_geom" WHERE id = OLD."fid";
  INSERT OR REPLACE INTO "rtree_{t}_geom" VALUES (NEW."fid", {box});
END;
CREATE TRIGGER "rtree_{t}_geom_update4" AFTER UPDATE ON "{t}"
  WHEN OLD."fid" != NEW."fid" AND (NEW."geom" ISNULL OR ST_IsEmpty(NEW."geom"))
BEGIN
  DELETE FROM "rtree_{t}_geom" WHERE id IN (OLD."fid", NEW."fid");
END;
CREATE TRIGGER "rtree_{t}_geom_delete" AFTER DELETE ON "{t}"
  WHEN old."geom" NOT NULL
BEGIN
  DELETE FROM "rtree_{t}_geom" WHERE id = OLD."fid";
END;
"""
_BOX = 'ST_MinX(NEW."geom"), ST_MaxX(NEW."geom"), ST_MinY(NEW."geom"), ST_MaxY(NEW."geom")'


def register_functions(db: sqlite3.Connection) -> None:
    """Give a connection the functions that GeoPackage's triggers call."""
    for index, name in enumerate(("ST_MinX", "ST_MaxX", "ST_MinY", "ST_MaxY")):
        db.create_function(name, 1, lambda blob, index=index: box_of_blob(blob)[index], deterministic=True)
    db.create_function("ST_IsEmpty", 1, lambda blob: bool(blob[3] & 0x10), deterministic=True)


def create_tables(db: sqlite3.Connection) -> None:
    """Make an empty store, inside a transaction."""
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {USER_VERSION}")
    _execute_all(db, TABLES)
    rows = [
        ("Undefined Cartesian SRS", -1, "NONE", -1, "undefined"),
        ("Undefined geographic SRS", 0, "NONE", 0, "undefined"),
        (WGS84, 4326, "EPSG", 4326, wkt_of(WGS84)),
    ]
    db.executemany("INSERT INTO gpkg_spatial_ref_sys VALUES (?, ?, ?, ?, ?, NULL)", rows)
    for name, doc in (
        ("products", "one row for each product; document is all that it says"),
        ("parents", "which product was made from which"),
        ("events", "what happened to products: put, merge, delete, prune"),
    ):
        db.execute(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier, description, last_change) "
            "VALUES (?, 'attributes', ?, ?, ?)", (name, name, doc, _LAST_CHANGE),
        )  # fmt: skip


def find_system(db: sqlite3.Connection, place: Place) -> int:
    """Return the number of a place's coordinate system; one that is not known is entered."""
    definition = wkt_of(place.crs, place.site)
    known = db.execute(
        "SELECT srs_id FROM gpkg_spatial_ref_sys WHERE srs_name = ? AND definition = ?",
        (place.crs, definition),
    ).fetchone()
    if known:
        return known[0]
    organization, _, code = place.crs.partition(":")
    if place.site is None:
        number = organization_id = int(code)
    else:
        newest = db.execute("SELECT max(srs_id) FROM gpkg_spatial_ref_sys").fetchone()[0]
        organization, number = "transect", max(FIRST_SITE, newest + 1)
        organization_id = number
    db.execute(
        "INSERT INTO gpkg_spatial_ref_sys VALUES (?, ?, ?, ?, ?, ?)",
        (place.crs, number, organization, organization_id, definition, _origin_of(place.site)),
    )
    return number


def _origin_of(site: Site | None) -> str | None:
    """Return body and origin of a site, which a reader of the store needs in addition to its definition."""
    if site is None or site.origin is None:
        return None
    return f"{site.body} {site.longitude!r} {site.latitude!r}"


def site_from(crs: str, description: str | None) -> Site:
    """Return the site of a row of coordinate systems."""
    name = crs.removeprefix("site:")
    if not description:
        return Site(name)
    body, longitude, latitude = description.split(" ")
    return Site(name, float(longitude), float(latitude), body)


def find_layer(db: sqlite3.Connection, place: Place, system: int) -> str:
    """Return the table of features for places of a shape and a coordinate system; it is made if need be."""
    kind = place.shape.upper()
    known = db.execute(
        "SELECT table_name FROM gpkg_geometry_columns WHERE srs_id = ? AND geometry_type_name = ?",
        (system, kind),
    ).fetchone()
    if known:
        return known[0]
    where = "" if place.crs == WGS84 else "_" + re.sub(r"[^a-z0-9]+", "_", place.crs.lower()).strip("_")[:40]
    table = f"{LAYERS[place.shape]}{where}"
    taken = db.execute("SELECT 1 FROM gpkg_contents WHERE table_name = ?", (table,)).fetchone()
    return _create_layer(db, f"{table}_{system}" if taken else table, kind, place.crs, system)


def _create_layer(db: sqlite3.Connection, table: str, kind: str, crs: str, system: int) -> str:
    db.execute(
        f'CREATE TABLE "{table}" (fid INTEGER PRIMARY KEY, geom {kind} NOT NULL, id TEXT NOT NULL, '
        'kind TEXT, name TEXT, robot TEXT, mission TEXT, "from" DATETIME, "to" DATETIME, score DOUBLE)'
    )
    db.execute(
        "INSERT INTO gpkg_contents (table_name, data_type, identifier, description, last_change, srs_id) "
        "VALUES (?, 'features', ?, ?, ?, ?)", (table, table, f"products in {crs}", _LAST_CHANGE, system),
    )  # fmt: skip
    db.execute("INSERT INTO gpkg_geometry_columns VALUES (?, 'geom', ?, ?, 0, 0)", (table, kind, system))
    db.execute(
        "INSERT INTO gpkg_extensions VALUES (?, 'geom', 'gpkg_rtree_index', "
        "'http://www.geopackage.org/spec120/#extension_rtree', 'write-only')", (table,),
    )  # fmt: skip
    _execute_all(db, _RTREE.format(t=table, box=_BOX))
    return table


def _execute_all(db: sqlite3.Connection, script: str) -> None:
    """Run several statements inside the transaction, which `executescript` would commit."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""
