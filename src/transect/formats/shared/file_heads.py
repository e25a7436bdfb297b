"""Classification of files by name and first bytes, for `recognises`. Uses only the standard library."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from transect.recording.text import is_number

if TYPE_CHECKING:
    from transect.recording import Source

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".pgm", ".ppm", ".tif", ".tiff")
SURE_SUFFIXES = (".pcd", ".ply", ".vtk")
"""Suffixes of files that are always point clouds."""
CLOUD_SUFFIXES = (*SURE_SUFFIXES, ".bin", ".xyz", ".csv")
XYZ = ("x", "y", "z")
LAYOUTS = {3: XYZ, 4: (*XYZ, "intensity"), 5: (*XYZ, "intensity", "ring")}
"""Columns of a cloud without header: KITTI has four, nuScenes and Seeing Through Fog have five."""
MAX_RANGE_M = 2_000.0
"""Exceeds the range of all vehicle lidars; numbers read with a wrong number of columns are larger."""
MAX_INTENSITY = 65_535.0
MAX_RINGS = 256
MIN_POINT_ROWS = 20
"""Smallest number of rows of a table without header that is considered a cloud."""
PAPERS = ("readme", "source", "license", "licence", "copying", "notes", "requirements", "important")
"""Prefixes of names of text files that are not data."""
_INSPECTED_LINES = 50
"""Lines used to classify a text."""
_COUNTS: WeakKeyDictionary[Source, Counter[str]] = WeakKeyDictionary()


PACKET_CAPTURES = (
    *(b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d"),
    b"\x0a\x0d\x0d\x0a",
)
"""First bytes of pcap (both byte orders, us and ns) and pcapng files."""
_QUICKTIME_BOXES = (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot")
_TEXT = bytes([*b"\t\n\r\x1b", *range(0x20, 0x7F)])


def is_packet_capture(head: bytes) -> bool:
    """Return whether a file is a capture of network packets (pcap, pcapng) by its first bytes."""
    return head.startswith(PACKET_CAPTURES)


def video_container(head: bytes) -> str:
    """Return FFmpeg's name of a video container from its first 16 bytes, or "".

    Playlists (HLS, DASH, ffconcat) are excluded, because they make the reader open other files and addresses.
    """
    if head[4:8] in _QUICKTIME_BOXES:
        return "mov"
    if head.startswith(b"RIFF") and head[8:12] == b"AVI ":
        return "avi"
    if head.startswith(b"\x1aE\xdf\xa3"):
        return "matroska"
    return {b"\0\0\x01\xba": "mpeg", b"\0\0\x01\xb3": "mpegvideo"}.get(head[:4], "")


def mostly_text(head: bytes) -> bool:
    """Return whether at least half of some bytes are printable ASCII or line ends."""
    return 2 * len(head.translate(None, _TEXT)) <= len(head)


def suffix_of(name: str) -> str:
    """Return a file name's suffix in lower case, with its dot."""
    dot = name.rfind(".")
    return name[dot:].lower() if dot > name.rfind("/") else ""


def is_paper(name: str) -> bool:
    """Return whether a file is documentation, by its name: README.md, SOURCE.txt."""
    return name.rpartition("/")[2].lower().startswith(PAPERS)


def suffix_counts(source: Source) -> Counter[str]:
    """Return the number of files of each suffix, cached because every format needs it."""
    if source not in _COUNTS:
        endings = Counter(name[name.rfind(".") :] for name in source.names)
        counts = _COUNTS[source] = Counter()
        for ending, count in endings.items():
            counts[suffix_of(ending)] += count
    return _COUNTS[source]


def first_rows(head: bytes) -> Iterator[list[bytes]]:
    """Iterate over the fields of the first lines of a text, without comments and a truncated last line."""
    whole = head.rpartition(b"\n")[0] if b"\n" in head else head
    lines = (line.strip() for line in whole.split(b"\n"))
    kept = (line for line in lines if line and not line.startswith((b"#", b"%")))
    rows = (line.replace(b",", b" ").split() for line, _ in zip(kept, range(_INSPECTED_LINES), strict=False))
    return (row for row in rows if row)


@lru_cache(maxsize=8)
def number_rows(head: bytes, width: int) -> tuple[tuple[float, ...], ...]:
    """Return the first lines of a text as numbers, if most of them are `width` numbers; else ().

    Cached, because several formats need it.
    """
    rows = list(first_rows(head))
    good = [row for row in rows if len(row) == width and all(is_number(token) for token in row)]
    return tuple(tuple(map(float, row)) for row in good) if 2 * len(good) > len(rows) else ()


def text_layout(head: bytes) -> tuple[tuple[str, ...], int, bool]:
    """Return the columns of a text of points, the number of header lines, and whether they have names.

    A first line with words is a header (libpointmatcher writes `x,y,z,nx,ny,nz`); without one, two columns
    are x y, and three to five are as in `LAYOUTS`.
    """
    skip, names = 0, tuple[str, ...]()
    for line in head.decode("utf-8-sig", "replace").splitlines():
        words = _words(line)
        if words and is_number(words[0]):
            named = len(names) == len(words)
            return names if named else _headerless(len(words)), skip, named
        names = tuple(_clean(w) for w in words if _clean(w)) or names
        skip += 1
    return names, skip, bool(names)


def _words(line: str) -> list[str]:
    return line.replace(",", " ").replace(";", " ").split()


def looks_like_raw_points(data: bytes) -> bool:
    """Return whether float32 numbers can be points of 3, 4 or 5 columns, see `plausible_layout`."""
    values = array("f", data[: len(data) // 4 * 4])
    if sys.byteorder == "big":
        values.byteswap()
    exact = [width for width in (5, 4, 3) if len(data) % (4 * width) == 0]
    return any(_plausible(values, width) for width in exact or (5, 4, 3))


def _plausible(values: array[float], width: int) -> bool:
    rows = len(values) // width
    columns = [values[i : rows * width : width] for i in range(width)]
    far = any(abs(v) > MAX_RANGE_M for column in columns[:3] for v in column)
    bright = all(0 <= v <= MAX_INTENSITY for column in columns[3:4] for v in column)
    ringed = all(0 <= v < MAX_RINGS and v == int(v) for column in columns[4:] for v in column)
    return rows > 0 and not far and bright and ringed


def looks_like_text_points(head: bytes) -> bool:
    """Return whether a text is points: its header starts with x y, or its numbers are small and unsorted.

    Without a header an increasing first column is the time of a log.
    """
    layout, skip, named = text_layout(head)
    if layout[:2] != ("x", "y") or b"\0" in head:
        return False
    if named:
        return True
    lines = head[: head.rfind(b"\n") + 1].decode("utf-8-sig", "replace").splitlines()[skip:]
    rows = [words for words in map(_words, lines) if len(words) == len(layout) and all(map(is_number, words))]
    first = [float(words[0]) for words in rows]
    if len(layout) > max(LAYOUTS) or len(first) < MIN_POINT_ROWS or 2 * len(first) < len(lines):
        return False
    return all(abs(x) < MAX_RANGE_M for x in first) and any(b < a for a, b in pairwise(first))


def _clean(word: str) -> str:
    """Return a header's word without comment signs and quotes; X, Y, Z are x, y, z."""
    word = word.lstrip("#/").strip('"')
    return word.lower() if word.lower() in XYZ else word


def _headerless(width: int) -> tuple[str, ...]:
    base = LAYOUTS.get(width) or ("x", "y") if width < 6 else XYZ
    return (*base, *(f"column_{i}" for i in range(len(base), width)))
