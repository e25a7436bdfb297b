"""Reproduction of products from their inputs, and comparison with the originals."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.engine import folder as run_folder
from transect.engine.folder import Files, list_briefly
from transect.errors import TransectError
from transect.recording.place_maps import MAP, digest_of_map

from .product import Product
from .run_products import INPUTS, PLACES, RUN, VERDICTS, find_kept_map, plain, stream_of
from .store import ProductStore, StoreError

if TYPE_CHECKING:
    from transect.engine import Compound, Run
    from transect.engine.context import KeptMap
    from transect.engine.digest import Difference
    from transect.recording import Recording, Stream

    from .product import Product
    from .store import ProductStore


class NotReproducibleError(StoreError):
    """An input is missing or was changed, or the origin of a product is unknown."""

    exit_code = 4


@dataclass(frozen=True)
class Reproduction:
    """Comparison of a second run with the first."""

    # What was asked for, and the run that made it
    product: Product
    run: Product
    digest: str  # of the second run
    # False if every node output is the same; else it says which port differed first, and when
    difference: Difference
    moved: Mapping[str, str]  # recordings, and maps of places, that were found elsewhere, by where they were

    @property
    def identical(self) -> bool:
        """Whether every byte is the same."""
        return self.digest == self.run.provenance.parameters["digest"]


def reproduce(store: ProductStore, identifier: str, look_in: Sequence[Path] = ()) -> Reproduction:
    """Run again what made a product, on the same inputs, and compare every node output.

    Parameters
    ----------
    identifier : str
        Of a run, or of something that a run gave.
    look_in : sequence of Path
        Folders in which to look, by hash, for recordings and maps that are not where they were.

    Raises
    ------
    NotReproducibleError
        States what is missing.
    """
    product = store.get(identifier)
    run = _find_run(store, product)
    parameters = run.provenance.parameters
    recording, moved = _open_recording(store, run, look_in)
    _check_inputs(store, run, recording)
    recording = recording.replace(streams=(*recording.streams, *_given_streams(store, run)))
    known, elsewhere = _find_map(store, parameters, look_in)
    with tempfile.TemporaryDirectory() as folder:  # nodes of a file are read while they run
        compound = _find_compound(parameters, look_in, Path(folder))
        judged = _verdicts_of(store, run) | {"map": known}
        again = _run_again(compound, recording, parameters["request"], judged)
    _check_inputs(store, run, recording)  # again: they may have changed meanwhile
    return Reproduction(product, run, again.digest, _compare(store, run, again), moved | elsewhere)


def _find_run(store: ProductStore, product: Product) -> Product:
    if product.kind == RUN:
        return product
    for parent in product.provenance.parents:
        made = store.look_up(parent)
        if made is not None and made.kind == RUN:
            return made
    why = "it was added by hand, or its run is not in this store"
    raise NotReproducibleError(f"the origin of {product.id[:12]} is unknown", where=store.address, why=why)


def _find_compound(parameters: Mapping[str, Any], look_in: Sequence[Path], folder: Path) -> Compound:
    """Return the original compound: by its name if it is unchanged, else from its description.

    Nodes of a Python file are taken from a file of the same name and content: in the working directory, or
    where it is looked for.
    """
    from transect.engine import Compound

    name = parameters["config"]["compound"]
    try:
        found = Compound.of(name)
        if found.to_yaml() == parameters["description"]:
            return found
    except TransectError:
        found = None
    file = folder / "compound.yaml"
    file.write_text(parameters["description"], encoding="utf-8")
    wanted = {
        name: sha256 for name, sha256 in parameters["config"].get("code", {}).items() if name.endswith(".py")
    }
    missing = [name for name, sha256 in wanted.items() if not _copy_code(name, sha256, look_in, folder)]
    implementation = name.partition("/")[2]
    try:
        made = Compound.of(f"{file}/{implementation}" if implementation else file)
        made.graph()  # finds its nodes
        return made
    except TransectError as error:
        why = "; ".join(part for part in (error.what, error.why) if part).replace(f"{file}:", "line ")
        look_in_hint = "--look-in names the folder that has it; or " if missing else ""
        files = f"{' and '.join(missing)} as the run used it is neither here nor where it was looked for: "
        raise NotReproducibleError(
            f"the compound {name} cannot be rebuilt",
            why=f"{files if missing else ''}{why}",
            hint=f"{look_in_hint}install the package of its nodes",
        ) from error


def _copy_code(name: str, sha256: str, look_in: Sequence[Path], folder: Path) -> bool:
    """Copy a Python file of nodes into a folder, if one of this name and content is found."""
    from transect.engine.provenance import hash_of_sources

    for place in (Path(name), *(found for each in look_in for found in sorted(each.rglob(name)))):
        if place.is_file() and hash_of_sources(place) == sha256:
            shutil.copyfile(place, folder / name)
            return True
    return False


def _open_recording(
    store: ProductStore, run: Product, look_in: Sequence[Path]
) -> tuple[Recording, dict[str, str]]:
    from transect.formats import open as open_recording

    recorded: dict[str, Any] = run.provenance.parameters["request"]["recording"]
    moved: dict[str, str] = {}
    files, _ = files_of_run(store, run)
    for number, path in enumerate(recorded["paths"]):
        if not Path(path).exists():
            wanted = {name: sha256 for (part, name), sha256 in files.items() if part == number}
            moved[path] = _find_moved(wanted, Path(path), look_in)
    paths: list[str] = [moved.get(path) or path for path in recorded["paths"]]
    return open_recording(*paths, format=recorded["format"] or None, **recorded["options"]), moved


def _given_streams(store: ProductStore, run: Product) -> Iterator[Stream]:
    """Yield what the run was fed with of other runs, under the names that it was wired by."""
    for product in map(store.get, run.provenance.parents):
        if product.kind in (PLACES, INPUTS):
            continue
        made_by = _find_run(store, product)
        yield stream_of(product, store.content(product.id), f"{made_by.name}:{product.name}")


def _find_moved(wanted: Mapping[str, str], path: Path, look_in: Sequence[Path]) -> str:
    """Return a recording that has the files that were read, wherever it is below some folders."""
    for candidate in _candidates(path, wanted, look_in):
        if _has_files(candidate, wanted):
            return str(candidate)
    tried = f"and not, by its content, in {', '.join(map(str, look_in))}" if look_in else ""
    hint = "" if look_in else "--look-in DIR finds it by its content wherever it is there"
    why = f"it is not there {tried}".strip()
    raise NotReproducibleError(f"the recording {path} is gone", why=why, hint=hint)


def _candidates(path: Path, wanted: Iterable[str], look_in: Sequence[Path]) -> Iterable[Path]:
    """Yield files of the same suffix, and folders that have a file of a wanted name; nearest first."""
    names = {Path(name).name: name for name in wanted}
    for top in look_in:
        for found in _files_below(top):
            if path.suffix and found.suffix == path.suffix:
                yield found
            elif found.name in names:
                inside = len(Path(names[found.name]).parts)
                yield found.parents[inside - 1]
                yield found


def _files_below(top: Path) -> list[Path]:
    """Return all files below a folder, the nearest first."""
    found = sorted(top.rglob("*"), key=lambda each: (len(each.parts), each))
    return [each for each in found if each.is_file()]


def _has_files(candidate: Path, wanted: Mapping[str, str]) -> bool:
    from transect.recording import source_of
    from transect.recording.source import FileSource

    try:
        source = source_of(candidate).root
        if isinstance(source, FileSource):
            return len(wanted) == 1 and source.sha256(source.names[0]) in wanted.values()
        # Only what is in it is read: the names come from a store.
        return all(name in source and source.sha256(name) == digest for name, digest in wanted.items())
    except (TransectError, OSError, KeyError):
        return False


def _find_map(
    store: ProductStore, parameters: Mapping[str, Any], look_in: Sequence[Path]
) -> tuple[KeptMap | None, dict[str, str]]:
    """Return the map of places that a run was given, if it was; and where it is, by where it was."""
    request: Mapping[str, Any] = parameters["request"]
    if "map" not in request:
        return None, {}
    path, digest = str(request["map"]), str(parameters["config"]["map"]["digest"])
    with tempfile.TemporaryDirectory() as scratch:
        for name, place in _map_candidates(store, path, digest, Path(scratch) / "map.zip", look_in):
            if (found := _read_map(place, digest, request["extend"])) is not None:
                return found, {} if name == path else {path: name}
    wrong = "not what it was" if Path(path).exists() else "gone"
    why = f"no whole map of the digest {digest[:12]} is there, in the store, or where it was looked for"
    hint = "--look-in DIR finds it by its digest; products keep STORE RUN of the run that made it, too"
    raise NotReproducibleError(f"the map {path} is {wrong}", why=why, hint=hint)


def _map_candidates(
    store: ProductStore, path: str, digest: str, copy: Path, look_in: Sequence[Path]
) -> Iterator[tuple[str, Path]]:
    """Yield what may be a map, and what to call it: where it was, the store's (as a file), and others."""
    yield path, Path(path)
    if (product := find_kept_map(store, digest)) is not None:
        copy.write_bytes(store.content(product.id))
        yield f"the product {product.id[:12]}", copy
    for found in (each for top in look_in for each in _files_below(top)):
        if found.name == MAP:
            yield str(found.parent), found.parent
        elif found.suffix == ".zip":
            yield str(found), found


def _read_map(path: Path, digest: str, extend: bool) -> KeptMap | None:
    """Return a map, if there is a whole one with this digest."""
    from transect.engine.folder import read_kept_map

    try:
        return read_kept_map(path, extend) if digest_of_map(path) == digest else None
    except TransectError:
        return None


def _verdicts_of(store: ProductStore, run: Product) -> dict[str, Any]:
    """Return how a run judged its sensors: not at all, as it went, or by a table in hindsight."""
    described = run.provenance.parameters["config"].get("verdicts")
    if described is None or not described["hindsight"]:
        if described is None or "config" not in described:
            return {"check": described is not None}
        from transect.integrity.config import read_config

        return {"check": read_config(json.dumps(described["config"]), "the configuration of the run")}
    from transect.integrity.table import VerdictTable

    tables = [product for product in map(store.get, store.children(run.id)) if product.kind == "Verdicts"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / VERDICTS
        file.write_bytes(store.content(tables[0].id))
        return {"verdicts": VerdictTable.read(file)}


def _run_again(
    compound: Compound, recording: Recording, request: Mapping[str, Any], judged: Mapping[str, Any]
) -> Run:
    from transect.engine import run

    return run(
        compound, recording, set=request["set"], wire=request["wire"], clock=request["clock"],
        reorder=request["reorder"], offset=request["offset"], start=request["start"], end=request["end"],
        **judged,
    )  # fmt: skip


def _check_inputs(store: ProductStore, run: Product, recording: Recording) -> None:
    """Raise if a file that the run read is not what it was."""
    if problems := find_changed_files(store, run, recording):
        hint = "put back the files as they were; if they moved, --look-in DIR finds them by their content"
        raise NotReproducibleError("the inputs are not what they were", why=list_briefly(problems), hint=hint)


def _compare(store: ProductStore, run: Product, again: Run) -> Difference:
    from transect.engine.digest import difference, settings_that_differ
    from transect.engine.folder import read_traces

    parameters = run.provenance.parameters
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.parquet"
        file.write_bytes(store.content(run.id))
        before = read_traces(file, parameters["ports"])
    settings = settings_that_differ(plain(again.config), parameters["config"])
    return difference(again.traces, before, settings, again.clock)


def files_of_run(store: ProductStore, run: Product) -> tuple[Files, list[str]]:
    """Return every file that a run read, series in full; and what is wrong with what says so."""
    from transect.engine.provenance import read_listing, summarise
    from transect.types.provenance import SourceFile

    files = {
        (source.part, source.path): source.sha256 for source in run.provenance.sources if source.count == 1
    }
    series = [source for source in run.provenance.sources if source.count > 1]
    if not series:
        return files, []
    listed: Files = {}
    for parent in run.provenance.parents:
        product = store.look_up(parent)
        if product is not None and product.kind == INPUTS:
            content = store.content(product.id)
            intact = hashlib.sha256(content).hexdigest() == product.payload.sha256
            listed = read_listing(content.decode("utf-8", "surrogateescape")) if intact else {}
    again = summarise(SourceFile(path, 0, sha256, part=part) for (part, path), sha256 in listed.items())
    known = {(source.part, source.path): source.sha256 for source in again}
    lost = [s.label for s in series if known.get((s.part, s.path)) != s.sha256]
    return {**files, **listed}, [f"the list of the files {label} is not in the store" for label in lost]


def find_changed_files(store: ProductStore, run: Product, recording: Recording) -> list[str]:
    """Return a sentence for each file that a run read and that is gone from a recording, or was changed."""
    files, problems = files_of_run(store, run)
    sources = [source.root for source in recording.sources]
    recorded_count = len(run.provenance.parameters["request"]["recording"]["paths"])
    if recorded_count != len(sources):
        return [f"it was made from {_count(recorded_count)}, not from {_count(len(sources))}"]
    read = {
        (part, file.path): file.sha256 for part, source in enumerate(sources) for file in source.files_read
    }
    return [*problems, *run_folder.find_changed_files(files, sources, read)]


def _count(parts: int) -> str:
    return "one recording" if parts == 1 else f"{parts} joined recordings"


def why_outdated(store: ProductStore, run: Product, recording: Recording) -> str:
    """Return why a run would not be the same if it ran now on a recording; "" if it would.

    Parameters
    ----------
    run : Product
        Of kind `Run`.
    """
    return next(_differences(store, run, recording), "")


def _differences(store: ProductStore, run: Product, recording: Recording) -> Iterator[str]:
    parameters = run.provenance.parameters
    config: Mapping[str, Any] = parameters["config"]
    recorded: Mapping[str, Any] = parameters["request"]["recording"]
    if another := why_another_recording(run, recording):
        yield another
        return
    if recorded["format"] != recording.format or recorded["options"] != plain(dict(recording.options)):
        yield "its recording was opened in another way"
    yield from _code_differences(parameters)
    if problems := find_changed_files(store, run, recording):
        yield f"made from other files: {list_briefly(problems)}"
    if not run.provenance.sources:
        yield "made from other files: none is known"
    given = {stream for stream in config["streams"] if ":" in stream and stream not in recording}
    for name, sha256 in config["streams"].items():
        if name not in given and (name not in recording or recording[name].sha256 != sha256):
            yield f"made from other samples of {name}"
    if config["calibration"] != _hash_calibration(recording):
        yield "made with another calibration"


def _is_another(streams: Mapping[str, str], recorded: Mapping[str, Any], recording: Recording) -> bool:
    """Return whether a run was of another recording: no path and no samples of a stream are the same."""
    ends = [Path(path).parts for path in recorded["paths"]]  # where a relative one began is not known
    if any(source.path.absolute().parts[-len(end) :] == end for source in recording.sources for end in ends):
        return False
    return not any(name in recording and recording[name].sha256 == sha256 for name, sha256 in streams.items())


def why_another_recording(run: Product, recording: Recording) -> str:
    """Return that a product of kind `Run` was made from another recording, "" if it was not."""
    parameters = run.provenance.parameters
    recorded: Mapping[str, Any] = parameters["request"]["recording"]
    if not _is_another(parameters["config"]["streams"], recorded, recording):
        return ""
    return f"made from another recording, {recorded['name']} ({', '.join(recorded['paths'])})"


def _hash_calibration(recording: Recording) -> str:
    from transect.recording.content_hash import hash_calibration

    return hash_calibration(recording)


def _code_differences(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield what of the code is not what it was: transect, its plug-ins, the compound, or other packages."""
    from transect.engine import Compound
    from transect.engine.provenance import code_of_plugins, hash_of_package, versions
    from transect.errors import TransectError

    config: Mapping[str, Any] = parameters["config"]
    code = dict(config.get("code", {}))
    if code.pop("transect", "") != hash_of_package():
        yield f"made by another version of transect ({config['versions']['transect']}, with other sources)"
        return
    now, then = versions(), dict(config["versions"])
    if other := sorted(name for name in {*now, *then} if now.get(name) != then.get(name)):
        yield f"made with another version of {', '.join(other)}"
    try:
        found: Compound = Compound.of(config["compound"])
        plugins = code_of_plugins(found.graph(), parameters["request"]["recording"]["format"])
    except TransectError as error:
        yield f"the compound that made it is not there: {error.what}"
        return
    if found.to_yaml() != parameters["description"]:
        yield f"the description of {config['compound']} was changed"
    if plugins != code:
        changed = sorted(name for name in {*plugins, *code} if plugins.get(name) != code.get(name))
        yield f"made by other code of {', '.join(changed)}"
