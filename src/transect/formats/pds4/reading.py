"""Reading PDS4 products: labels, and what they describe as streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from transect.base.files import file_paths
from transect.errors import ParseError
from transect.recording import Loss, Parsed, Recording, Source, Stream, arrow, cache, source_of
from transect.recording.arrow import PAYLOAD, strings
from transect.types import Image, Record

from . import LABELS, NAMESPACE
from .label import TABLES, DataFile, Label, Part, parse_label
from .tables import BINARY, decode, has_times, read_table

PARSER = "pds4/1"
TEXT = "Stream_Text"
_OF_COLLECTIONS = {"Product_Bundle": "/readme", "Product_Collection": "/inventory"}
"""What they hold is called so, after their own names: products may be called as they are."""


def read(source: Source) -> Recording:
    """Read what the labels describe; tables and images are loaded when they are asked for."""
    labels: list[tuple[str, Label]] = []
    losses: list[Loss] = []
    chosen = sorted(source.names)
    if len(chosen) == 1 and source.path.is_file():
        source = source_of(source.path.parent)
    for name in chosen:
        if not name.lower().endswith(LABELS) or NAMESPACE not in source.head(name):
            continue
        try:
            labels.append((name, parse_label(source.document(name), name)))
        except ParseError as error:
            losses.append(Loss(name, error.what if not error.why else f"{error.what}: {error.why}"))
    if not labels and losses:
        raise ParseError("no label can be read", where=losses[0].file, why=losses[0].reason)
    described = [each for name, label in labels for each in _describe(source, name, label, losses)]
    names = file_paths([name for name, *_ in described])
    streams = tuple(
        _stream(source, name, file, part) for name, (_, file, part) in zip(names, described, strict=True)
    )
    first = labels[0][1]
    products = {f"{label.lid}::{label.vid}": label.title for _, label in labels}
    return Recording(
        first.lid.rpartition(":")[2] or source.stem, streams, format="pds4", source=source,
        conditions={**first.context, "products": products}, reader_losses=tuple(losses),
    )  # fmt: skip


def _describe(source: Source, name: str, label: Label, losses: list[Loss]) -> Iterator[tuple[str, str, Part]]:
    """Give the name of a stream, the file and the part, of everything in a product that can be one."""
    folder = PurePosixPath(name).parent
    product = label.lid.rpartition(":")[2] or PurePosixPath(name).stem
    product += _OF_COLLECTIONS.get(label.kind, "")
    for each in label.files:
        path = _find(source, folder, each)
        if path is None:
            losses.append(Loss(name, f"{each.name} is not beside its label"))
            continue
        parts = [part for part in each.parts if part.kind in TABLES or part.kind == TEXT or part.axes]
        alone = len(parts) == 1 and len(label.files) == 1
        for part in parts:
            yield product if alone else f"{product}/{part.name}", path, part


def _find(source: Source, folder: PurePosixPath, file: DataFile) -> str | None:
    path = str(folder / file.name)
    if path in source:
        return path
    return next((name for name in source.names if name.lower() == path.lower()), None)


def _stream(source: Source, name: str, file: str, part: Part) -> Stream:
    if part.axes:
        table = partial(_file_row, file)
        return Stream(name, Image, table, clock="index", loader=partial(_load_array, source, part))
    if part.kind == TEXT:
        return Stream(name, Record, partial(_read_text, source, part, file), clock="index")
    key = f"{PARSER}|{hash_of(part)}"
    table = partial(cache.parse, source, file, key, partial(read_table, part=part, file=file), text=False)
    return Stream(name, Record, table, clock="utc" if has_times(part) else "index")


def hash_of(part: Part) -> str:
    """Return what of a label decides how a table is read, for the key of the cache."""
    from hashlib import sha256

    return sha256(repr(part).encode()).hexdigest()[:16]


def _file_row(file: str) -> Parsed:
    return Parsed(arrow.table(np.zeros(1, np.int64), {PAYLOAD: strings([file])}))


def _read_text(source: Source, part: Part, file: str) -> Parsed:
    end = None if part.length is None else part.offset + part.length
    lines = source.read(file)[part.offset : end].decode("utf-8", "replace").splitlines()
    return Parsed(arrow.table(np.arange(len(lines), dtype=np.int64), {"text": strings(lines)}))


def _load_array(source: Source, part: Part, row: Mapping[str, Any]) -> Image:
    """Load an array: lines and samples, and bands last."""
    assert part.element is not None
    file = row[PAYLOAD]
    if part.element.data_type not in BINARY:
        raise ParseError(f"{part.element.data_type} is no type of elements", where=file)
    kind = np.dtype(BINARY[part.element.data_type])
    shape = [axis.elements for axis in part.axes]
    count = int(np.prod(shape, dtype=object))
    data = source.buffer(file)
    if part.offset + count * kind.itemsize > len(data):
        size = " x ".join(map(str, shape))
        why = f"{size} of {part.element.data_type} from byte {part.offset} on in {len(data)} bytes"
        raise ParseError(f"{file} is too short for {part.name}", where=file, why=why)
    stored = np.frombuffer(memoryview(data)[part.offset :], kind, count).reshape(shape)
    values = _bands_last(decode(stored, part.element), part)
    valid = ~np.isnan(values) if part.element.missing and values.dtype.kind == "f" else None
    if valid is not None and valid.ndim == 3:
        valid = valid.all(axis=2)
    mode = "rgb" if values.ndim == 3 and values.shape[2] == 3 and values.dtype == np.uint8 else "gray"
    return Image(values, mode, valid=valid)


def _bands_last(values: Any, part: Part) -> Any:
    """Return an array with its bands as the last axis; two axes for one."""
    values = values.reshape(1, -1) if values.ndim == 1 else values
    if values.ndim < 3:
        return values
    names = [axis.name.lower() for axis in part.axes]
    band = names.index("band") if "band" in names else 0
    return np.moveaxis(values, band, -1)
