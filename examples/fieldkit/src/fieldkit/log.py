"""The hauler's log: `hauler.csv` with the columns stamp (s), ax, ay, az (m/s2), wx, wy, wz (deg/s), volt."""

from __future__ import annotations

from transect import robots
from transect.base.units import to_si
from transect.formats import Match, no
from transect.recording import Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.source import Buffer
from transect.recording.text import CsvLayout, read_csv
from transect.types import Imu

FILE = "hauler.csv"
LAYOUT = CsvLayout(names=("stamp", "ax", "ay", "az", "wx", "wy", "wz", "volt"), times={"stamp": 10**9})


def recognises(source: Source) -> Match:
    """Recognise the log by its name and its header."""
    if FILE not in source:
        return no(f"no {FILE}")
    if not source.head(FILE).startswith(b"stamp,ax"):
        return no(f"it has {FILE} but with another header")
    return Match(0.95, f"{FILE} begins with stamp,ax")


def read(source: Source) -> Recording:
    """Read the log; rows that cannot be read are left out and reported."""
    imu = Stream("Imu", Imu, lambda: cache.parse(source, FILE, "hauler/1", _build), frame="Imu")
    return Recording(source.stem, (imu,), source=source, robot=robots.load("hauler"))


def _build(buffer: Buffer) -> Parsed:
    csv = read_csv(buffer, LAYOUT, FILE)
    acceleration = {f"acc_{axis}": csv.table.column(f"a{axis}") for axis in "xyz"}
    rate = {f"gyro_{axis}": to_si(arrow.numbers(csv.table, f"w{axis}"), "deg/s") for axis in "xyz"}
    voltage = {"voltage": csv.table.column("volt")}
    units = {**Imu.units(), "voltage": "V"}
    table = arrow.table(arrow.numbers(csv.table, "stamp"), acceleration | rate | voltage, units=units)
    return Parsed(table, csv.losses)
