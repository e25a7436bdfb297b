"""Streams as products: columns become one table, payloads (images, clouds, maps) a product each."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import IO, Any

import numpy as np
import pyarrow as pa

from transect.base.field_docs import read_field_comments
from transect.errors import ParseError
from transect.recording import Stream, arrow
from transect.recording.arrow import LOG_NS, PAYLOAD, T_NS
from transect.types import DepthMap, GridMap, Image, JointState, PointCloud

from ..bundle import BundleProduct, Content, Kind, ProductFile
from ..contents.files import ImageArray
from ..contents.tables import BinaryTable, DelimitedTable, TableColumn, time_column
from ..identifiers import Lid, Vid
from ..labels.areas import LabelReference, ProductContext, short_text, utc_text
from ..labels.disciplines import ArmState, display, geometry
from ..labels.objects import DataObject
from ..xml import LabelElement

TIMES = {
    "t_ns": "Time in nanoseconds on the {clock} clock",
    "log_ns": "Time at which the sample was logged, in nanoseconds",
}
CLOCKS = {
    "utc": "UTC, since 1970-01-01",
    "device": "device's own",
    "sclk": "spacecraft",
    "index": "index (samples are counted, not timed)",
}
_SHAPE = re.compile(r"^\([^()]*\)[,;:]?\s*")
"""The shape of an array at the start of a comment, such as `(n, 3)`."""


@cache
def describe_columns(kind: type) -> dict[str, str]:
    """Return the description of each canonical column of a type, from the documentation of its fields."""
    said = describe_fields(kind)
    found: dict[str, str] = {}
    for each in dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ():
        columns = each.metadata.get("columns", ())
        title = each.name.replace("_", " ").capitalize()
        for name in columns:
            part = f", {name}" if len(columns) > 1 else ""
            text = said.get(each.name, "")
            found[name] = f"{title}{part}: {text}" if text else f"{title}{part}"
    return found


@cache
def describe_fields(kind: type) -> dict[str, str]:
    """Return the descriptions of a type's fields from the comments above or behind them, without shapes."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        for name, (_, comment) in read_field_comments(base).items():
            if text := _SHAPE.sub("", comment).lstrip("."):
                found[name] = _plain(text[:1].upper() + text[1:])
    return found


def _plain(text: str) -> str:
    return text.replace("``", "").replace("`", "")


def summary_of(kind: type) -> str:
    """Return the first line of a type's documentation."""
    return _plain((kind.__doc__ or kind.__name__).strip().splitlines()[0])


RAW_TYPES = (Image,)
"""Types with raw sensor data; other measurements are in physical units, i.e. calibrated."""


def _no_texts() -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class FilePlacement:
    """The target of the products of a stream, and their common description."""

    collection: Lid
    stem: str  # start of the names of its products and files
    context: ProductContext  # without times
    title: str = ""
    description: str = ""
    references: tuple[LabelReference, ...] = ()
    formats: Mapping[str, str] = field(default_factory=_no_texts)  # printf formats of columns
    descriptions: Mapping[str, str] = field(default_factory=_no_texts)
    every: int = 1  # of the payloads: 1 for all, 10 for every tenth
    kind: Kind = "Product_Observational"
    vid: Vid | None = None


@dataclass(frozen=True)
class Later:
    """Content that is created on writing, so that large bundles need little memory."""

    make: Callable[[], Content]

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Make and write it."""
        return list(self.make().write(out))


def default_level(stream: Stream) -> str:
    """Return the processing level of a stream (InSight SIS, Table 5)."""
    if stream.role != "measurement":
        return "Derived"
    return "Raw" if stream.type in RAW_TYPES else "Calibrated"


def stream_products(stream: Stream, placement: FilePlacement) -> Iterator[BundleProduct]:
    """Yield the products of a stream."""
    if stream.loader is None or PAYLOAD not in stream.table.column_names:
        yield table_product(stream, placement)
        return
    if stream.type not in _PAYLOADS:
        yield _value_product(stream, placement)
        return
    rows = range(0, len(stream), placement.every)
    names = [f"{placement.stem}_{row:06d}" for row in rows] if len(stream) > 1 else [placement.stem]
    yield from _payload_products(stream, placement, dict(zip(rows, names, strict=True)))


# Tables


def table_product(stream: Stream, placement: FilePlacement) -> BundleProduct:
    """Return a stream's columns as one delimited table."""
    context = replace(placement.context, times=_span(stream))
    if stream.type is JointState and len(stream):
        context = _with(context, geometry((), [_arm_state(stream)], "The arm at the first record"))
    content = Later(partial(_table, stream, placement))
    return _product(
        placement, placement.stem, (ProductFile(f"{placement.stem}.csv", content),), context, stream
    )


def _table(stream: Stream, placement: FilePlacement) -> DelimitedTable:
    said = placement.description or summary_of(stream.type)
    return DelimitedTable(list(table_columns(stream, placement)), description=said)


def table_columns(stream: Stream, placement: FilePlacement) -> Iterator[TableColumn]:
    """Yield the columns of a stream: its times, then what it measured."""
    table, units = stream.table, stream.units
    if _is_dated(stream):
        yield time_column(stream.t_ns)
    said = {**describe_columns(stream.type), **placement.descriptions}
    clock = CLOCKS.get(stream.clock, stream.clock)
    for name in (T_NS, LOG_NS):
        if name in table.column_names:
            yield TableColumn(name, table.column(name), "ns", TIMES[name].format(clock=clock))
    for name in stream.columns:
        about = said.get(name, name.replace("_", " ").capitalize())
        yield from _columns(name, table.column(name), units.get(name, ""), about, placement.formats)


def _columns(
    name: str, values: pa.ChunkedArray, unit: str, about: str, formats: Mapping[str, str]
) -> Iterator[TableColumn]:
    """Yield a column; of lists of unequal lengths one that is as wide as the longest, and their lengths."""
    kind, format = values.type, formats.get(name, "")
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not arrow.holds_numbers(kind):
        yield TableColumn(name, values, unit, about, format)
        return
    flat, lengths = _lists(values)
    width = int(lengths.max()) if len(lengths) else 0
    if len(lengths) and (lengths != width).any():
        yield TableColumn(f"{name}_count", lengths, "", f"How many numbers {name} has; the rest is missing")
    if width:
        padded = np.full((len(lengths), width), np.nan)
        padded[np.arange(width) < lengths[:, None]] = flat
        whole = pa.types.is_integer(kind.value_type) and not np.isnan(padded).any()
        yield TableColumn(name, padded.astype(np.int64) if whole else padded, unit, about, format)


def _lists(values: pa.ChunkedArray) -> tuple[Any, Any]:
    """Return concatenated lists of numbers, and their lengths; null lists are empty."""
    import pyarrow.compute as pc

    compute: Any = pc
    lengths = compute.fill_null(compute.list_value_length(values), 0)
    table = pa.table({"flat": compute.list_flatten(values)})
    return arrow.numbers(table, "flat"), arrow.numbers(pa.table({"n": lengths}), "n").astype(np.int64)


def _arm_state(stream: Stream) -> ArmState:
    first = stream[0].row
    angles = [float(angle) for angle in np.ravel(first["position"])]
    names = first.get("names") or [f"joint {number}" for number in range(1, len(angles) + 1)]
    return ArmState(stream.frame or stream.name, list(zip(map(str, names), angles, strict=False)))


# Payloads


def _payload_products(
    stream: Stream, placement: FilePlacement, names: Mapping[int, str]
) -> Iterator[BundleProduct]:
    suffix, content, elements = _PAYLOADS[stream.type]
    folder = placement.stem.replace(".", "_") if len(names) > 1 else ""  # folders of an archive have no dots
    times = stream.t_ns
    for row, name in names.items():
        moment = utc_text(int(times[row])) if _is_dated(stream) else None
        context = replace(placement.context, times=(moment, moment) if moment else None)
        file = ProductFile(f"{name}{suffix}", Later(partial(content, stream, row, placement)))
        made = _product(placement, name, (file,), _with(context, *elements(stream)), stream)
        yield replace(made, folder=folder)
    if len(names) > 1:
        yield _index_product(stream, placement, names, suffix)


def _index_product(
    stream: Stream, placement: FilePlacement, names: Mapping[int, str], suffix: str
) -> BundleProduct:
    """Return a table of all payloads: exact times, file, and all other columns."""
    rows = np.fromiter(names, np.int64)
    chosen = stream.replace(source=stream.table.take(arrow.from_numpy(rows)))
    files = [f"{name}{suffix}" for name in names.values()]
    columns = Later(lambda: DelimitedTable(
        [*table_columns(chosen, placement), TableColumn("file_name", files, "", "File of the sample")],
        description=f"When each sample of {stream.name} was taken, and its file",
    ))  # fmt: skip
    name = f"{placement.stem}_index"
    plain = replace(placement, title=f"{stream.name}: index of its samples", kind="Product_Ancillary")
    context = replace(placement.context, times=_span(stream), levels=(), disciplines=())
    return replace(
        _product(plain, name, (ProductFile(f"{name}.csv", columns),), context, stream), references=()
    )


def load(stream: Stream, row: int) -> Any:
    """Return a payload; an error names the stream."""
    try:
        return stream[row].value
    except ParseError:
        raise
    except (OSError, ValueError, KeyError) as error:
        raise ParseError(f"sample {row} of {stream.name} cannot be read", why=str(error)) from error


def _image(stream: Stream, row: int, placement: FilePlacement) -> ImageArray:
    image: Image = load(stream, row)
    data = image.data[..., ::-1] if image.mode == "bgr" and image.data.ndim == 3 else image.data
    mode = {"bgr": "rgb", "bgra": "rgba"}.get(image.mode, image.mode)
    said = placement.description or f"{stream.name}, {mode}"
    return ImageArray(data, description=said, valid=image.valid)


def _depth(stream: Stream, row: int, placement: FilePlacement) -> ImageArray:
    said = placement.description or summary_of(DepthMap)
    return ImageArray(load(stream, row).data, "m", said)


def _cloud(stream: Stream, row: int, placement: FilePlacement) -> BinaryTable:
    cloud: PointCloud = load(stream, row)
    points = np.asarray(cloud.points)
    axes = [
        TableColumn(
            name, points[:, number], "m", f"Position of the point, {name}, in {cloud.frame or 'its frame'}"
        )
        for number, name in enumerate("xyz")
    ]
    others = [TableColumn(name, np.asarray(values), "", name) for name, values in cloud.fields.items()]
    return BinaryTable([*axes, *others], placement.description or summary_of(PointCloud))


@dataclass(frozen=True)
class Layers:
    """The layers of a map, one after the other in one file."""

    grid: GridMap
    description: str

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write all layers; return an array for each."""
        a, b, c, d, e, f = self.grid.transform
        where = f"corner of a cell: x = {a!r} col + {b!r} row + {c!r}, y = {d!r} col + {e!r} row + {f!r}"
        crs = f", {self.grid.crs}" if self.grid.crs else f", frame {self.grid.frame}"
        objects: list[DataObject] = []
        for number, (name, values) in enumerate(self.grid.layers.items()):
            unit = "m" if name == "elevation" else ""
            said = f"{self.description}; layer {name}; {where}{crs}"
            identifier = "image" if number == 0 else f"image_{number + 1}"
            objects += ImageArray(np.asarray(values), unit, said, identifier).write(out)
        return objects


def _map(stream: Stream, row: int, placement: FilePlacement) -> Layers:
    return Layers(load(stream, row), placement.description or summary_of(GridMap))


def _is_colour(stream: Stream) -> bool:
    """Return whether the images of a stream have bands, by the first that can be read."""
    for row in range(min(len(stream), 3)):
        try:
            data = stream[row].value.data
        except (ParseError, OSError, ValueError):
            continue
        return data.ndim == 3 and data.shape[2] >= 3
    return False


def _describe_display(stream: Stream) -> tuple[LabelElement, ...]:
    return (display(stream.type is Image and _is_colour(stream)),)


def _nothing(stream: Stream) -> tuple[LabelElement, ...]:
    return ()


_PAYLOADS: dict[type, tuple[str, Callable[..., Content], Callable[[Stream], tuple[LabelElement, ...]]]] = {
    Image: (".img", _image, _describe_display),
    DepthMap: (".img", _depth, _describe_display),
    PointCloud: (".dat", _cloud, _nothing),
    GridMap: (".img", _map, _describe_display),
}


def _value_product(stream: Stream, placement: FilePlacement) -> BundleProduct:
    """Return payloads of other types as one table, their fields laid out as columns."""
    context = replace(placement.context, times=_span(stream))
    content = Later(partial(_values, stream, placement))
    return _product(
        placement, placement.stem, (ProductFile(f"{placement.stem}.csv", content),), context, stream
    )


def _values(stream: Stream, placement: FilePlacement) -> DelimitedTable:
    from transect.engine.output_tables import KeepingError, column_of, leaves_of

    rows = range(0, len(stream), placement.every)
    values = [load(stream, row) for row in rows]
    times = stream.t_ns[list(rows)]
    columns = [time_column(times)] if _is_dated(stream) else []
    columns.append(TableColumn(T_NS, times, "ns", TIMES[T_NS].format(clock=CLOCKS[stream.clock])))
    for leaf in leaves_of("", values):
        try:
            column = column_of(leaf)
        except KeepingError:  # lists without numbers
            column = arrow.strings([json.dumps(plain_value(each)) for each in leaf.values])
        said = leaf.name.replace("_", " ")
        columns += _columns(leaf.name, pa.chunked_array([column]), leaf.unit, said, placement.formats)
    return DelimitedTable(columns, placement.description or summary_of(stream.type))


def plain_value(value: Any) -> Any:
    """Return a value for JSON: arrays as lists, dataclasses as mappings."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if dataclasses.is_dataclass(value):
        return {each.name: plain_value(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value if isinstance(value, str | int | float | None) else str(value)


# Common


def _product(
    placement: FilePlacement,
    name: str,
    files: tuple[ProductFile, ...],
    context: ProductContext,
    stream: Stream,
) -> BundleProduct:
    title = placement.title or f"{stream.name}: {summary_of(stream.type)}"
    return BundleProduct(
        placement.collection.child(name), short_text(title), files, placement.kind, context,
        placement.references, vid=placement.vid,
    )  # fmt: skip


def _with(context: ProductContext, *elements: LabelElement | None) -> ProductContext:
    found = tuple(each for each in elements if each is not None)
    return replace(context, disciplines=(*context.disciplines, *found))


def _is_dated(stream: Stream) -> bool:
    return stream.clock == "utc" and not stream.meta.get("timeless")


def _span(stream: Stream) -> tuple[str, str] | None:
    timing = stream.timing
    if not _is_dated(stream) or timing.start_ns is None or timing.end_ns is None:
        return None
    return utc_text(timing.start_ns), utc_text(timing.end_ns)
