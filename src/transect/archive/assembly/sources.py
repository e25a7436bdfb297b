"""Building and describing the bundle of a recording, run or store."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from string import Template

from transect.base import plugins
from transect.errors import UsageError
from transect.recording import Recording, Stream

from ..builder import BuiltBundle, build_bundle, context_path
from ..bundle import Bundle
from ..bundle_reader import find_labels, read_bundle, read_existing
from ..context import ContextRegistry, find_registry
from ..identifiers import Lid, identifier_part
from ..labels.areas import utc_text
from .bundles import NOT_FOR_SUBMISSION, Material, make_bundle
from .config import GENERAL, STAND_IN_WORD, ArchiveConfig, date_text, parse_config, read_config
from .results import ArchivedResult, SkippedResult, results_of, store_results
from .streams import default_level, summary_of

SIMULATED_WORLD = "SimulatedWorld"
NO_TIME = "1970-01-01T00:00:00Z"
"""Placeholder for an unknown date."""
UNDATED = (
    "no clock of the recording tells a date: `created`, `start`, `stop` and `year` of 1970 stand for one "
    "that is not known; write the dates into the YAML file"
)


def default_created(recordings: Iterable[Recording]) -> str:
    """Return when an archive is made by default: the end of the recording, not the current time."""
    spans = [each.spans().get("utc") for each in recordings]
    ends = [span[1] for span in spans if span is not None]
    return f"{utc_text(max(ends))[:19]}Z" if ends else NO_TIME


def template_text(
    recording: Recording | None, path: str = "", results: Iterable[str] = (), products: str = ""
) -> str:
    """Return a file that describes the archive of a recording, of results, or of both.

    Parameters
    ----------
    path : str
        Of the recording, as the file is to name it.
    results : iterable of str
        Folders of runs, folders of verdicts, files.
    products : str
        Address of a store of products.
    """
    text = files("transect.archive.assembly").joinpath("template.yaml").read_text(encoding="utf-8")
    return Template(text).substitute(_fill(recording, path, list(results), products))


def _fill(recording: Recording | None, path: str, results: list[str], products: str) -> dict[str, str]:
    """Return what stands for each word of `template.yaml`."""
    name = (recording.name if recording is not None else Path((results or [products])[0]).stem) or "unnamed"
    robot = recording.robot if recording is not None else None
    created = default_created([] if recording is None else [recording])
    start = _day(recording, 0) or created[:10]
    texts = {
        "products": products,
        "created": created,
        "identifier": identifier_part(name),
        "name": name,
        "about": _about(recording),
        "start": start,
        "stop": _day(recording, 1) or start,
        "robot": robot.name if robot and robot.name else "robot",
        "about_robot": f"{robot.title}. {robot.reference}" if robot else "",
    }
    return {word: _quote(text) for word, text in texts.items()} | {
        "recording": "# recording: PATH" if recording is None else f"recording: {_quote(path)}",
        "results": ", ".join(map(_quote, results)),
        "simulated": str(_is_simulated(recording)).lower(),
        "authority": STAND_IN_WORD,
        "year": created[:4],
        "streams": "" if recording is None else _describe_streams(recording),
    }


def _describe_streams(recording: Recording) -> str:
    return "".join(f"{line}\n" for line in (*_instruments(recording), *_streams(recording)))


def _is_simulated(recording: Recording | None) -> bool:
    """Return whether transect simulated a recording: the truth beside it is in a frame of its own."""
    return recording is not None and any(each.frame == SIMULATED_WORLD for each in recording.streams)


def _instruments(recording: Recording) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for stream in recording.streams:
        if stream.role != "truth":
            device = stream.name.strip("/").partition("/")[0] or stream.name
            groups.setdefault(device, []).append(stream.name)
    if not groups:
        return
    yield "# Which sensor gave which streams; patterns such as Gnss/* match several."
    yield "instruments:"
    for name, streams in groups.items():
        yield f"  - name: {_quote(name)}"
        yield f"    streams: [{', '.join(map(_quote, streams))}]"
        yield '    description: ""'
        yield '    lid: ""'
    yield ""


def _streams(recording: Recording) -> Iterator[str]:
    yield "# level: Raw, Partially Processed, Calibrated or Derived. skip: true leaves it out, every: 10"
    yield '# takes each tenth image or cloud; columns: {x: {description: ..., format: "%9.4f"}} says more.'
    yield "streams:"
    for stream in recording.streams:
        yield f"  {_quote(stream.name)}:  # {stream.type.__name__}, {len(stream)} samples"
        yield f"    level: {default_level(stream)}"
        yield f"    title: {_quote(_title(stream))}"
    yield ""


def _title(stream: Stream) -> str:
    return f"{stream.name}: {summary_of(stream.type)}"


def _about(recording: Recording | None) -> str:
    if recording is None:
        return ""
    robot = recording.robot.title or recording.robot.name if recording.robot else "a robot"
    return f"{len(recording.streams)} streams of {robot}, recorded as {recording.format}"


def _day(recording: Recording | None, end: int) -> str:
    span = recording.spans().get("utc") if recording is not None else None
    return utc_text(span[end])[:10] if span else ""


def _quote(text: str) -> str:
    """Return a text as YAML (JSON is a subset of it)."""
    return json.dumps(text, ensure_ascii=False)


_OURS = re.compile(r"^(bundle|authority|recording|results|products|investigation) *:", re.MULTILINE).search


def build(
    path: Path, folder: Path, context: Path | None = None, *, as_printed: bool = False, products: str = ""
) -> BuiltBundle:
    """Build a bundle from a path: a file that describes it, a recording, results, a bundle.

    Parameters
    ----------
    folder : Path
        Of the bundle.
    context : Path, optional
        The list of registered context products.
    as_printed : bool
        Of the archive of InSight's arm: label tables as document 002 prints it, with its mistakes.
    products : str
        Address of the store whose products are archived, instead of the one that the file names.
    """
    if created := _bundle_time(path):
        return build_bundle(read_bundle(path, created), folder)
    config = config_of(path)
    registry = find_registry(context)
    with opened(config, products) as material:
        bundle, notes = _bundle(config, material, registry, as_printed)
        built = build_bundle(bundle, folder)
        lost = () if material.recording is None else material.recording.losses
    notes += _notes(config)
    if registry.path is None and config.said.profile == GENERAL:
        notes.append("no list of registered context products was found; names and types are as you gave them")
    if context_path(built.folder).is_file():
        notes.append(
            f"context products of the bundle's own, to be registered, are in {context_path(built.folder)}; "
            "validate takes it as --add-context"
        )
    return replace(
        built, losses=(*(f"{each.where}: {each.reason}" for each in lost), *built.losses), notes=tuple(notes)
    )


def _bundle(
    config: ArchiveConfig, material: Material, registry: ContextRegistry, as_printed: bool
) -> tuple[Bundle, list[str]]:
    if config.said.profile != GENERAL:
        profile = plugins.load("archives", config.said.profile)
        return profile.make_bundle(config, material.recording, as_printed=as_printed), []
    if as_printed:
        raise UsageError(
            "no document prints labels of this recording", hint="--as-printed is for InSight's arm"
        )
    return make_bundle(config, material, registry)


def _notes(config: ArchiveConfig) -> Iterator[str]:
    if config.said.is_stand_in:
        yield f"{NOT_FOR_SUBMISSION} Name yours: authority: in the YAML file"
    elif not Lid(f"{config.said.prefix}:x").is_accepted:
        yield f"the core's Schematron does not accept identifiers that begin with {config.said.prefix}"
    if not config.said.bundle.authors.strip():
        yield "the bundle names no author, and cannot be cited: authors: in the YAML file"
    if is_undated(config):
        yield UNDATED


def _bundle_time(path: Path) -> str:
    """Return when the newest file of a bundle was made, "" if a path is no bundle."""
    if not path.is_dir():
        return ""
    labels = [label for label in find_labels(path) if label.parent == path]
    found = [read_existing(label) for label in labels]
    if not any(each.kind == "Product_Bundle" for each in found):
        return ""
    times = [created for each in found for _, created in each.files.values() if created]
    return f"{max(times).removesuffix('Z')}Z" if times else NO_TIME


def is_undated(config: ArchiveConfig) -> bool:
    """Return whether an archive still has the placeholder date."""
    return date_text(config.said.created).startswith(NO_TIME[:10])


def config_of(path: Path) -> ArchiveConfig:
    """Return what a file says of an archive; of a recording, a run or a store, what `init` would write."""
    if is_config(path):
        return read_config(path)
    return parse_config(describe(path, path.name), path.absolute())


def is_config(path: Path) -> bool:
    """Return whether a path is a file that describes an archive; calibrations are YAML, too."""
    if not path.is_file() or path.suffix.lower() not in (".yaml", ".yml"):
        return False
    return bool(_OURS(path.read_text(encoding="utf-8", errors="replace")))


def describe(path: Path, named: str, results: Sequence[str] = ()) -> str:
    """Return the file that describes the archive of a path, which it calls by `named`, and of results."""
    if (path / "run.json").is_file() or (path / "verdicts.parquet").is_file():
        return template_text(None, results=[named, *results])
    if path.suffix == ".gpkg":
        return template_text(None, results=results, products=named)
    from transect import formats

    recording = formats.open(path)
    if recording.format in plugins.strings("archives"):
        return plugins.load("archives", recording.format).describe(recording, named)
    return template_text(recording, named, results)


@contextmanager
def opened(config: ArchiveConfig, products: str = "") -> Generator[Material]:
    """Open what a file names; what stores hold is unpacked as long as the block lasts.

    `products` is the address of a store that is opened instead of the file's.
    """
    said = config.said
    store = products or _store_path(config)
    with tempfile.TemporaryDirectory(prefix="transect-archive-") as scratch:
        results = [each for name in said.results for each in results_of(config.path(name))]
        if store:
            results += store_results(store, Path(scratch))
        made = tuple(each for each in results if isinstance(each, ArchivedResult))
        left = tuple(each for each in results if isinstance(each, SkippedResult))
        yield Material(_recording(config), made, left)


def _store_path(config: ArchiveConfig) -> str:
    """Return the path of the store that a file names; raise if it is on a server."""
    named = config.said.products
    if "://" not in named:
        return str(config.path(named)) if named else ""
    raise config.error(
        f"the file names a store on a server, {named}",
        "products",
        why="a file must not make this computer connect to an address that its user does not know",
        hint=f"if you trust it: transect archive build {config.file} -o BUNDLE --products {named}",
    )


def _recording(config: ArchiveConfig) -> Recording | None:
    if not config.said.recording:
        return None
    from transect import formats

    path = config.path(config.said.recording)
    if not path.exists():
        raise config.error(f"the recording {path} is not there", "recording")
    return formats.open(path)
