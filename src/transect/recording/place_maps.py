"""Keyframe maps on disk: a folder, or a zip of it, with the pose graph and the observations.

======================  =================================================================================
`map.json`              kind, frame, calibration, anchor, sha256 of every other file, digest of the whole
`keyframes.parquet`     time, session, pose and covariance of each keyframe
`edges.parquet`         ends, relative pose, covariance and kind of each edge
`NAME.npy`              observations: the concatenated arrays of that name of all keyframes
`NAME.offsets.npy`      offset of each keyframe, and the end of the last
======================  =================================================================================
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base import files
from transect.base.files import zip_of
from transect.errors import GeometryError, ParseError, TransectError, UnsupportedError, UsageError
from transect.types.places import Anchor, Edges, Observation, PlaceMap

from . import arrow, parquet
from .open_source import source_of
from .source import Source

MAP, KEYFRAMES, EDGES = "map.json", "keyframes.parquet", "edges.parquet"
FOLDER = "map"
"""Folder of the map in the folder of a run."""
MERGED = "merged.json"
"""Written next to a merged map if some of its parts must not be trusted: the reasons."""
LAYOUT = "transect map 1"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}").fullmatch


class PlaceMapError(ParseError):
    """A damaged, modified or incomplete map."""


def write_map(places: PlaceMap, folder: Path) -> list[Path]:
    """Write a map to a new folder, atomically, and return its files."""
    contents = _encode(places)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    head = {"layout": LAYOUT, **_describe(places), "sha256": hashes}
    head["digest"] = _digest(head)
    files.refuse_existing(folder)
    with files.staged(folder) as made:
        made.mkdir()
        for name, data in contents.items():
            files.write_bytes(made / name, data)
        files.write_text(made / MAP, json.dumps(head, indent=1, sort_keys=True) + "\n")
    return [folder / name for name in sorted([*contents, MAP])]


def read_map(path: Path | str, kind: str = "") -> PlaceMap:
    """Read a map from its folder, the folder of its run, or a file written with `pack_map`.

    Parameters
    ----------
    kind : str, optional
        Name of the compound that must have made the map.

    Raises
    ------
    UsageError
        If there is no map, or if it is of another kind.
    PlaceMapError
        If a file is missing, modified or truncated.
    """
    source = find_map(path)
    head = _read_head(source)
    if kind and head["kind"] != kind:
        raise UsageError(
            f"the map is of {head['kind']}, not of {kind}", where=str(source.path),
            hint=f"transect run {head['kind']} ... --map {path}",
        )  # fmt: skip
    try:
        return _decode(head, _read_files(source, head))
    except (KeyError, ValueError, TypeError, pa.ArrowException, GeometryError) as error:
        raise PlaceMapError(
            "this map does not fit together", where=str(source.path), why=str(error)
        ) from error


def pack_map(path: Path | str) -> bytes:
    """Return a map as the bytes of a zip for `read_map`; equal maps have equal bytes.

    Raises
    ------
    PlaceMapError
        If a file of the map is missing, modified or truncated.
    """
    source = find_map(path)
    contents = _read_files(source, _read_head(source))
    return zip_of({MAP: source.read(MAP), **dict(sorted(contents.items()))})


def digest_of_map(path: Path | str) -> str:
    """Return the digest of a map's content."""
    return str(_read_head(find_map(path))["digest"])


def is_anchored(path: Path | str) -> bool:
    """Return whether satellite fixes georeferenced a map, and thereby aligned it with gravity."""
    return _read_head(find_map(path))["anchor"] is not None


def find_map(path: Path | str) -> Source:
    """Return the files of a map, given its folder, that of its run, or a zip of either."""
    hint = "transect run LaserSlam PATH -o DIR makes one"
    try:
        source = source_of(path)
    except TransectError as error:
        raise UsageError(f"{path} is no map", where=str(path), why=error.what, hint=hint) from error
    for folder in (source, source.at(FOLDER)):
        if MAP in folder:
            return folder
    why = f"it has neither {MAP} nor {FOLDER}/{MAP}"
    raise UsageError(f"{path} is no map", where=str(path), why=why, hint=hint)


def _describe(place_map: PlaceMap) -> dict[str, Any]:
    anchor = place_map.anchor
    return {
        "kind": place_map.kind,
        "frame": place_map.frame,
        "child": place_map.child,
        "calibration": dict(place_map.calibration),
        "anchor": None if anchor is None else {"crs": anchor.crs, "T_crs_map": anchor.T_crs_map.tolist()},
        "observations": sorted({name for each in place_map.observations for name in each}),
    }


def _digest(head: Mapping[str, Any]) -> str:
    text = json.dumps({name: value for name, value in head.items() if name != "digest"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _encode(place_map: PlaceMap) -> dict[str, bytes]:
    """Return the bytes of every file but the head."""
    keyframes = arrow.table(
        place_map.t_ns,
        {
            "session": place_map.session,
            "pose": arrow.ragged(list(place_map.poses.reshape(-1, 16))),
            "covariance": arrow.ragged(list(place_map.covariances.reshape(-1, 36))),
        },
    )
    edges = pa.table(
        {
            "a": arrow.column(place_map.edges.a),
            "b": arrow.column(place_map.edges.b),
            "motion": arrow.ragged(list(place_map.edges.T_a_b.reshape(-1, 16))),
            "covariance": arrow.ragged(list(place_map.edges.covariance.reshape(-1, 36))),
            "what": arrow.strings(place_map.edges.what),
        }
    )
    contents = {KEYFRAMES: _table_bytes(keyframes), EDGES: _table_bytes(edges)}
    for name in sorted({name for each in place_map.observations for name in each}):
        contents |= _encode_observations(name, place_map.observations)
    return contents


def _encode_observations(name: str, observations: Sequence[Observation]) -> dict[str, bytes]:
    if not _NAME(name):
        raise UnsupportedError(f"an observation cannot be called {name!r}", hint="lower-case letters, digits")
    given = [np.asarray(each[name]) for each in observations if name in each]
    alike = {(each.dtype.str, each.shape[1:], each.ndim > 0, each.dtype.hasobject) for each in given}
    if len(alike) != 1 or not next(iter(alike))[2] or next(iter(alike))[3]:
        raise UnsupportedError(
            f"the arrays {name!r} of a map's keyframes are not alike",
            why=f"types and shapes behind the first axis: {sorted(map(str, alike))}",
        )
    nothing = given[0][:0]
    arrays = [np.asarray(each.get(name, nothing)) for each in observations]
    offsets = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
    return {f"{name}.npy": _array_bytes(np.concatenate(arrays)), f"{name}.offsets.npy": _array_bytes(offsets)}


def _decode(head: Mapping[str, Any], contents: Mapping[str, bytes]) -> PlaceMap:
    keyframes = parquet.read_table(contents[KEYFRAMES], KEYFRAMES)
    edges = parquet.read_table(contents[EDGES], EDGES)
    seen = {name: _decode_observations(name, contents) for name in head["observations"]}
    anchor = head["anchor"]
    return PlaceMap(
        head["kind"],
        arrow.numbers(keyframes, "t_ns"),
        _matrices(keyframes, "pose", 4),
        _matrices(keyframes, "covariance", 6),
        arrow.numbers(keyframes, "session"),
        Edges(
            arrow.numbers(edges, "a"),
            arrow.numbers(edges, "b"),
            _matrices(edges, "motion", 4),
            _matrices(edges, "covariance", 6),
            tuple(arrow.texts(edges, "what")),
        ),
        [{name: seen[name][k] for name in seen} for k in range(len(keyframes))],
        head["calibration"],
        None if anchor is None else Anchor(anchor["crs"], np.array(anchor["T_crs_map"], np.float64)),
        head["frame"],
        head["child"],
    )


def _decode_observations(name: str, contents: Mapping[str, bytes]) -> list[NDArray[Any]]:
    values, offsets = (_array(contents[f"{name}{end}"]) for end in (".npy", ".offsets.npy"))
    return [values[first:last] for first, last in itertools.pairwise(offsets)]


def _matrices(table: pa.Table, name: str, size: int) -> NDArray[np.float64]:
    flat, _ = arrow.lists_of(table, name)
    return flat.reshape(len(table), size, size)


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def _array_bytes(values: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(values), allow_pickle=False)
    return stream.getvalue()


def _array(data: bytes) -> NDArray[Any]:
    return np.load(io.BytesIO(data), allow_pickle=False)


def _read_head(source: Source) -> dict[str, Any]:
    try:
        head = json.loads(source.text(MAP))
        if head["layout"] != LAYOUT or head["digest"] != _digest(head):
            raise ValueError(f"its layout is not {LAYOUT!r}, or it was changed")
        if unsafe := [name for name in head["sha256"] if Path(name).name != name]:
            raise ValueError(f"it names a file outside of itself: {unsafe[0]!r}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ParseError) as error:
        raise PlaceMapError(
            "this map cannot be read", where=str(source.path / MAP), why=str(error)
        ) from error
    return head


def _read_files(source: Source, head: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the contents of all files that the head lists."""
    return {name: _read_file(source, name, sha256) for name, sha256 in head["sha256"].items()}


def _read_file(source: Source, name: str, sha256: str) -> bytes:
    where = str(source.path / name)
    try:
        data = source.read(name)
    except (OSError, KeyError, ParseError) as error:
        raise PlaceMapError("a file of the map is missing", where=where, why=str(error)) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise PlaceMapError(
            "a file of the map was changed or cut short", where=where,
            why=f"its {len(data)} bytes are not those that {MAP} names", hint="make the map again",
        )  # fmt: skip
    return data
