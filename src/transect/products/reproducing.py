"""Making a product again from its inputs, and saying whether it is the same."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.errors import TransectError

from .keeping import RUN, VERDICTS, plain, stream_of
from .product import Payload, Product
from .store import ProductStore, StoreError

if TYPE_CHECKING:
    from transect.engine import Compound, Run
    from transect.engine.comparing import Difference
    from transect.recording import Recording, Stream


class NotReproducibleError(StoreError):
    """An input is missing or was changed, or nothing says how a product was made."""

    exit_code = 4


@dataclass(frozen=True)
class Reproduction:
    """How a second run compares with the first.

    Attributes
    ----------
    product, run : Product
        What was asked for, and the run that made it.
    digest : str
        Of the second run.
    difference : Difference
        False if every node output is the same; else it says which port differed first, and when.
    moved : mapping of str to str
        Recordings that were found elsewhere, by where they were.
    """

    product: Product
    run: Product
    digest: str
    difference: Difference
    moved: Mapping[str, str]

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
        Folders in which to look, by hash, for recordings that are not where they were.

    Raises
    ------
    NotReproducibleError
        That says what is missing.
    """
    product = store.get(identifier)
    run = _find_run(store, product)
    said = run.provenance.parameters
    recording, moved = _open_recording(run, look_in)
    recording = recording.replace(streams=(*recording.streams, *_given_streams(store, run)))
    request = said["request"]
    again = _run_again(_find_compound(said), recording, request, _verdicts_of(store, run))
    _check_inputs(run, recording)
    return Reproduction(product, run, again.digest, _compare(store, run, again), moved)


def _find_run(store: ProductStore, product: Product) -> Product:
    if product.kind == RUN:
        return product
    for parent in product.provenance.parents:
        made = store.lineage(parent).product
        if made is not None and made.kind == RUN:
            return made
    why = "a person put it, or the run that made it is not in this store"
    raise NotReproducibleError(f"nothing says how {product.id[:12]} was made", where=store.address, why=why)


def _find_compound(said: Mapping[str, Any]) -> Compound:
    """Return the compound as it was: that of this name, if it is unchanged, else from its description."""
    from transect.engine import Compound

    name = said["config"]["compound"]
    try:
        found = Compound.of(name)
        if found.to_yaml() == said["description"]:
            return found
    except TransectError:
        found = None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "compound.yaml"
        file.write_text(said["description"], encoding="utf-8")
        implementation = name.partition("/")[2]
        try:
            return Compound.of(f"{file}/{implementation}" if implementation else file)
        except TransectError as error:
            hint = "install the package, or go to the folder, that has its nodes"
            raise NotReproducibleError(
                f"the compound {name} cannot be made again", why=str(error), hint=hint
            ) from error


def _open_recording(run: Product, look_in: Sequence[Path]) -> tuple[Recording, dict[str, str]]:
    from transect.formats import open as open_recording

    recorded: dict[str, Any] = run.provenance.parameters["request"]["recording"]
    moved: dict[str, str] = {}
    for path in recorded["paths"]:
        if not Path(path).exists():
            moved[path] = _find_moved(run, Path(path), look_in)
    paths: list[str] = [moved.get(path) or path for path in recorded["paths"]]
    return open_recording(*paths, format=recorded["format"] or None, **recorded["options"]), moved


def _given_streams(store: ProductStore, run: Product) -> Iterator[Stream]:
    """Give what the run was fed with of other runs, under the names that it was wired by."""
    for parent in run.provenance.parents:
        product = store.get(parent)
        made_by = _find_run(store, product)
        yield stream_of(product, store.content(product.id), f"{made_by.name}:{product.name}")


def _find_moved(run: Product, path: Path, look_in: Sequence[Path]) -> str:
    """Return a recording that has the files that were read, wherever it is below some folders."""
    wanted = {source.path: source.sha256 for source in run.provenance.sources}
    for candidate in _candidates(path, wanted, look_in):
        if _has_files(candidate, wanted):
            return str(candidate)
    tried = f"and not, by its content, in {', '.join(map(str, look_in))}" if look_in else ""
    hint = "" if look_in else "--look-in DIR finds it by its content wherever it is there"
    why = f"it is not there {tried}".strip()
    raise NotReproducibleError(f"the recording {path} is gone", why=why, hint=hint)


def _candidates(path: Path, wanted: Iterable[str], look_in: Sequence[Path]) -> Iterable[Path]:
    """Give files of the same suffix, and folders that have a file of a wanted name; nearest first."""
    names = {Path(name).name: name for name in wanted}
    for top in look_in:
        for found in sorted(top.rglob("*"), key=lambda each: (len(each.parts), each)):
            if path.suffix and found.suffix == path.suffix and found.is_file():
                yield found
            elif found.name in names and found.is_file():
                inside = len(Path(names[found.name]).parts)
                yield found.parents[inside - 1]
                yield found


def _has_files(candidate: Path, wanted: Mapping[str, str]) -> bool:
    from transect.recording import source_of

    if candidate.is_file() and Payload.of(candidate, "bin").sha256 in wanted.values():
        return True
    try:
        source = source_of(candidate)
        return all(source.sha256(name) == digest for name, digest in wanted.items())
    except (TransectError, OSError, KeyError):
        return False


def _verdicts_of(store: ProductStore, run: Product) -> dict[str, Any]:
    """Return how a run judged its sensors: not at all, as it went, or by a table in hindsight."""
    described = run.provenance.parameters["config"].get("verdicts")
    if described is None or not described["hindsight"]:
        return {"check": described is not None}
    from transect.integrity.table import VerdictTable

    tables = [product for product in map(store.get, store.children(run.id)) if product.kind == "Verdicts"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / VERDICTS
        file.write_bytes(store.content(tables[0].id))
        return {"verdicts": VerdictTable.read(file)}


def _run_again(
    compound: Compound, recording: Recording, request: Mapping[str, Any], judged: Mapping[str, Any]
) -> Run:
    from transect.integrity import run

    return run(
        compound, recording, set=request["set"], wire=request["wire"], clock=request["clock"],
        reorder=request["reorder"], offset=request["offset"], start=request["start"], end=request["end"],
        **judged,
    )  # fmt: skip


def _check_inputs(run: Product, recording: Recording) -> None:
    """Raise if a file that both runs read is not the same."""
    before = {source.path: source.sha256 for source in run.provenance.sources}
    now = {source.path: source.sha256 for source in recording.provenance.sources}
    changed = [name for name, digest in before.items() if now.get(name, digest) != digest]
    if changed:
        why = ", ".join(f"{name}: {before[name][:12]} then, {now[name][:12]} now" for name in changed)
        hint = "--look-in DIR finds the files as they were"
        raise NotReproducibleError("the inputs are not what they were", why=why, hint=hint)


def _compare(store: ProductStore, run: Product, again: Run) -> Difference:
    from transect.engine.comparing import difference, settings_that_differ
    from transect.engine.folder import read_traces

    said = run.provenance.parameters
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.parquet"
        file.write_bytes(store.content(run.id))
        before = read_traces(file, said["ports"])
    settings = settings_that_differ(plain(again.config), said["config"])
    return difference(again.traces, before, settings, again.clock)
