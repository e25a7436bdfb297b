"""Results as streams: outputs of runs, verdicts, products of a store, and single files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transect.errors import ParseError, TransectError, UnsupportedError
from transect.products import Payload, Product
from transect.recording import Parsed, Stream, parquet
from transect.recording.arrow import T_NS
from transect.types import Record
from transect.types.provenance import Provenance, SourceFile

VERDICTS = "verdicts.parquet"


@dataclass(frozen=True)
class ArchivedResult:
    """A computed result."""

    stream: Stream  # named `RUN/PORT`
    provenance: Provenance  # how it was computed; labels list its `parameters`
    inputs: tuple[str, ...] = ()  # names of input streams
    description: str = ""  # description of its compound; "" without one
    file: Path = Path()  # its path
    # (int, int) what it is about, in UTC, where the stream itself does not say
    times_ns: tuple[int, int] | None = None

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """The source files; its own file if they are not known."""
        if self.provenance.sources:
            return self.provenance.sources
        made = Payload.of(self.file, "file")
        return (SourceFile(self.file.name, made.size, made.sha256),)


@dataclass(frozen=True)
class SkippedResult:
    """A map of keyframes, `RUN/PORT`, for which PDS4 has no product type."""

    name: str

    def __str__(self) -> str:
        return f"{self.name} is a map of places, and no product is made of it"


def results_of(path: Path) -> Iterator[ArchivedResult | SkippedResult]:
    """Yield the results in the folder of a run, in a folder of verdicts, or in a file.

    Raises
    ------
    ParseError, UnsupportedError
        If it is none of these.
    """
    if (path / "run.json").is_file():
        yield from _run_results(path)
    elif (path / VERDICTS).is_file():
        yield _file_result(path / VERDICTS, f"{path.name}/verdicts", Provenance())
    elif path.is_file():
        yield _file_result(path, path.stem, Provenance())
    else:
        hint = "transect run ... -o DIR and transect check ... -o DIR write such folders"
        raise ParseError(f"{path} holds no results", where=str(path), hint=hint)


def store_results(address: str, scratch: Path) -> Iterator[ArchivedResult | SkippedResult]:
    """Yield the products of a store; their payloads go to a folder that has to last as long as they."""
    from transect.products import open_store
    from transect.products.run_products import INPUTS, PLACES, RUN

    with open_store(address, create=False) as store:
        products = sorted(store.find(), key=lambda each: (each.name, each.id))
        runs = {each.id: each for each in products if each.kind == RUN}
        for product in products:
            if product.kind in (RUN, INPUTS):
                continue
            parent = next((runs[each] for each in product.provenance.parents if each in runs), None)
            name = f"{parent.name}/{product.name}" if parent else product.name or product.kind
            if product.kind == PLACES:
                yield SkippedResult(name)
                continue
            file = scratch / product.id / f"payload.{product.payload.format}"
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as out:
                out.writelines(store.read(product.id))
            made = _file_result(file, name, parent.provenance if parent else product.provenance)
            yield replace(made, times_ns=_times(product))


def _run_results(folder: Path) -> Iterator[ArchivedResult | SkippedResult]:
    from transect.products.run_products import INPUTS, PLACES, RUN, products_of_run

    record = Provenance()
    for product, content in products_of_run(folder):
        if product.kind == RUN:
            record = product.provenance
        elif product.kind == PLACES:
            yield SkippedResult(f"{folder.name}/{product.name}")
        elif product.kind != INPUTS and isinstance(content, Path):
            made = _file_result(content, f"{folder.name}/{product.name}", record)
            yield replace(made, times_ns=_times(product))


def _times(product: Product) -> tuple[int, int] | None:
    if product.clock != "utc" or product.t0_ns is None or product.t1_ns is None:
        return None
    return product.t0_ns, product.t1_ns


def _file_result(file: Path, name: str, record: Provenance) -> ArchivedResult:
    """Return the content of a file, with its provenance as far as known."""
    said: Mapping[str, Any] = record.parameters
    config: Mapping[str, Any] = said.get("config", {})
    wiring: Mapping[str, Any] = config.get("wiring", {})
    listed = {"compound": config.get("compound", ""), "digest": said.get("digest", "")}
    parameters = {**listed, **config.get("parameters", {})} if config else {}
    return ArchivedResult(
        _open(file).replace(name=name, role="estimate"), replace(record, parameters=parameters),
        tuple(each["stream"] for each in wiring.values() if "stream" in each),
        str(said.get("description", "")), file,
    )  # fmt: skip


def _open(file: Path) -> Stream:
    """Return what a file holds; of a Parquet file of no known columns a table as it is."""
    from transect import formats

    try:
        [stream] = formats.open(file).streams
        return stream
    except UnsupportedError:
        if file.suffix != ".parquet":
            raise
        table = parquet.read_table(file, str(file))
        timed = T_NS in table.column_names
        return Stream(file.stem, Record, Parsed(table if timed else _count_rows(table)), clock="index")
    except ValueError as error:
        raise TransectError(f"{file} holds several streams", where=str(file)) from error


def _count_rows(table: Any) -> Any:
    """Return a table with a column that counts its rows, which every stream has."""
    import numpy as np

    from transect.recording import arrow

    return table.add_column(0, T_NS, arrow.from_numpy(np.arange(table.num_rows, dtype=np.int64)))
