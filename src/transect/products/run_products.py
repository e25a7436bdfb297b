"""Products of a run: each output, and the run itself, from which they can be rebuilt."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.errors import ParseError, UnsupportedError
from transect.types.provenance import Provenance, SourceFile

from .extents import Extent, FrameAnchor, extent_of_file, extent_of_map, find_anchors
from .place import Site
from .product import Payload, Product
from .store import Item, ProductQuery, ProductStore

if TYPE_CHECKING:
    from transect.recording import Stream

RUN = "Run"
"""The kind of the product that a run itself is; its payload is the trace to hold a second run against."""
LISTING = "inputs.sha256"
"""What a run lists its inputs in (`engine.provenance`)."""
VERDICTS = "verdicts.parquet"
"""What a run acted on, where it did."""
INPUTS = "Inputs"
"""The kind of the listing of all files that a run read, kept where a series of files is one entry."""
PLACES = "PlaceMap"
"""The kind of a map of places, which is kept as one file."""


@dataclass(frozen=True)
class OutputPart:
    """What becomes one product of an output: bytes, their format, time and place, and what else it says."""

    content: bytes | Path
    format: str
    extent: Extent
    said: Mapping[str, Any] = field(default_factory=dict[str, Any])


def keep_run(
    store: ProductStore, folder: Path, mission: str = "", command: str = "", parents: Sequence[str] = ()
) -> list[str]:
    """Keep the run in a folder and all its outputs; return the ids, that of the run first.

    Parameters
    ----------
    mission : str
        Which campaign they belong to.
    command : str
        The command line.
    parents : sequence of str
        Input products of the run, in addition to the recording (`stream_of`). Its input map is one,
        too, if the store has it.
    """
    given = _read_json(folder / "run.json")["config"].get("map")
    map_product = find_kept_map(store, given["digest"]) if given else None
    all_parents = (*parents, map_product.id) if map_product else parents
    return store.put_many(list(products_of_run(folder, mission, command, all_parents)))


def find_kept_map(store: ProductStore, digest: str) -> Product | None:
    """Return the newest map of places with this digest (`recording.place_maps`) that a store has."""
    found = store.find(ProductQuery(kind=PLACES))
    return next((each for each in found if each.provenance.parameters.get("digest") == digest), None)


def stream_of(product: Product, content: bytes, name: str) -> Stream:
    """Return poses, or arrays, that are kept as a stream, which a run can be fed with."""
    if product.payload.format == "parquet" and product.kind == "ndarray":
        return _arrays_of(content, name)
    if product.payload.format != "tum":
        hint = "only poses (tum) and arrays can"
        raise UnsupportedError(
            f"{product.name} cannot be fed to a run", why=product.payload.format, hint=hint
        )
    from transect.formats import open as open_recording

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "poses.tum"
        file.write_bytes(content)
        [stream] = open_recording(file, format="tum")
        return stream.replace(name=name, source=stream.parsed, role="estimate")


def _arrays_of(content: bytes, name: str) -> Stream:
    """Return the arrays of a port's table (`engine.output_tables`), each in its shape."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from transect.recording import Stream

    table = pq.read_table(pa.BufferReader(content)).replace_schema_metadata()
    return Stream(
        name, np.ndarray, table, role="estimate",
        loader=lambda row: np.reshape(row["value"], row["value_shape"]),
    )  # fmt: skip


def products_of_run(
    folder: Path, mission: str = "", command: str = "", parents: Sequence[str] = ()
) -> Iterator[Item]:
    """Give the products that a run's folder holds, that of the run first."""
    content = _read_json(folder / "run.json")
    config, request = content["config"], content.get("request", {})
    recorded = request.get("recording", {})
    description = (folder / "compound.yaml").read_text(encoding="utf-8")
    provenance = Provenance(
        tuple(SourceFile(**file) for file in recorded.get("files", ())),
        f"transect {config['versions']['transect']}", recorded.get("format", ""), command,
        {
            "request": request, "config": plain(config), "description": description,
            "digest": content["digest"], "ports": content["ports"],
            "conclusions": content.get("conclusions", []),
        },
        tuple(parents),
    )  # fmt: skip
    common: dict[str, Any] = {
        "robot": recorded.get("robot", ""),
        "mission": mission,
        "clock": config["time"]["clock"],
    }
    if any(source.count > 1 for source in provenance.sources):
        listed = folder / LISTING
        inputs = Product(INPUTS, Payload.of(listed, "sha256"), recorded.get("name", ""), **common)
        provenance = replace(provenance, parents=(*provenance.parents, inputs.id))
    else:
        inputs = None
    span = config["time"]["span_ns"] or (None, None)
    trace = folder / "trace.parquet"
    run = Product(
        RUN, Payload.of(trace, "parquet"), content["name"], t0_ns=span[0], t1_ns=span[1],
        quality=_quality(content, folder), provenance=provenance, **common,
    )  # fmt: skip
    yield run, trace
    if inputs is not None:
        yield inputs, folder / LISTING
    made = Provenance(tool=provenance.tool, parents=(run.id,))
    site = Site(recorded.get("name") or folder.name)
    outputs = dict(content["outputs"])
    names = [name for output in outputs.values() for name in output["files"] if name.endswith(".tum")]
    anchors = find_anchors(request, [folder / name for name in names]) if recorded else {}
    if (folder / VERDICTS).is_file():
        outputs["verdicts"] = {"type": "Verdicts", "files": [VERDICTS]}
    for port, output in outputs.items():
        for part in _parts_of(folder, output, site):
            extent = _locate(part.extent, anchors)
            t0_ns, t1_ns = extent.time_ns or span
            yield Product(
                output["type"], Payload.of(part.content, part.format), port,
                frame=extent.frame, t0_ns=t0_ns, t1_ns=t1_ns, place=extent.place,
                quality=_quality(content, folder, port),
                provenance=replace(made, parameters=part.said), **common,
            ), part.content  # fmt: skip


def _parts_of(folder: Path, output: Mapping[str, Any], site: Site) -> Iterator[OutputPart]:
    """Give each file of an output; of a map of places, which is a folder, one file of all."""
    if output["type"] == PLACES:
        from transect.recording.place_maps import digest_of_map, pack_map, read_map

        for place in sorted({(folder / name).parent for name in output["files"]}):
            facts = {"digest": digest_of_map(place)}
            yield OutputPart(pack_map(place), "zip", extent_of_map(read_map(place), site), facts)
        return
    for file in (file for name in output["files"] for file in _files(folder / name)):
        yield OutputPart(file, file.suffix.removeprefix(".").lower() or "bin", extent_of_file(file, site))


def _locate(extent: Extent, anchors: Mapping[str, FrameAnchor]) -> Extent:
    """Return an extent in its place on Earth, where that of its frame, or of the run's only one, is known."""
    only = next(iter(anchors.values())) if len(anchors) == 1 and not extent.frame else None
    place, anchor = extent.place, anchors.get(extent.frame, only)
    if anchor is None or place is None or place.site is None:
        return extent
    if anchor.is_north_up:
        return replace(extent, place=replace(place, site=anchor.site(place.site.name)))
    return replace(extent, place=anchor.locate(place))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return content if content["config"]["time"] and content["outputs"] is not None else {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "transect run ... -o DIR writes one"
        raise ParseError(
            "this is not the folder of a run", where=str(path), why=str(error), hint=hint
        ) from error


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: numbers that it has no words for, and objects, as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
    finite = not isinstance(value, float) or math.isfinite(value)
    return value if finite and isinstance(value, str | int | float | None) else str(value)


def _quality(content: Mapping[str, Any], folder: Path, port: str = "") -> dict[str, float]:
    """Return the score of a run's output, and its error; without an evaluation there is neither.

    The score is 1 minus the ratio of the position error (ATE RMSE) to the length of the path. It is 0 if a
    node said that the result must not be trusted, or if the run did not come to its end.
    """
    error = _evaluation(folder / f"{port}.result") if port else {}
    failed = content.get("status", "complete") != "complete"
    if failed or any(each["bad"] for each in content.get("conclusions", ())):
        error["score"] = 0.0
    return error


def _evaluation(path: Path) -> dict[str, float]:
    """Return what an evaluation against truth gave, where there was one."""
    if not path.is_file():
        return {}
    from transect.evaluation.result import load_result

    ate: Mapping[str, Any] = load_result(path).metrics.get("ate", {})
    rmse, percent = ate.get("translation", {}).get("rmse"), ate.get("percent")
    quality = {} if rmse is None else {"ate_rmse_m": float(rmse)}
    return quality if percent is None else quality | {"score": max(0.0, 1.0 - percent / 100)}


def _files(path: Path) -> list[Path]:
    return sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
