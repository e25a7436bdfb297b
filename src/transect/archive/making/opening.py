"""From a path to a bundle: the file that describes it, the recording and the results that it names."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from transect.base import plugins
from transect.errors import UsageError
from transect.recording import Recording

from ..building import Built, build_bundle, context_path
from ..bundle import Bundle
from ..context import Registry, find_registry
from ..existing import find_labels, read_bundle, read_existing
from ..identifiers import Lid
from .bundles import NOT_FOR_SUBMISSION, Material, make_bundle
from .config import GENERAL, Config, date_text, parse_config, read_config
from .results import LeftOut, Result, results_of, store_results
from .template import NO_TIME, UNDATED, template_text

_OURS = re.compile(r"^(bundle|authority|recording|results|products|investigation) *:", re.MULTILINE).search


def build(
    path: Path, folder: Path, context: Path | None = None, *, as_printed: bool = False, products: str = ""
) -> Built:
    """Build a bundle of whatever a path names: a file that describes it, a recording, results, a bundle.

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
    config: Config, material: Material, registry: Registry, as_printed: bool
) -> tuple[Bundle, list[str]]:
    if config.said.profile != GENERAL:
        profile = plugins.load("archives", config.said.profile)
        return profile.make_bundle(config, material.recording, as_printed=as_printed), []
    if as_printed:
        raise UsageError(
            "no document prints labels of this recording", hint="--as-printed is for InSight's arm"
        )
    return make_bundle(config, material, registry)


def _notes(config: Config) -> Iterator[str]:
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


def is_undated(config: Config) -> bool:
    """Tell whether an archive still has the date that stands for an unknown one."""
    return date_text(config.said.created).startswith(NO_TIME[:10])


def config_of(path: Path) -> Config:
    """Return what a file says of an archive; of a recording, a run or a store, what `init` would write."""
    if is_config(path):
        return read_config(path)
    return parse_config(describe(path, path.name), path.absolute())


def is_config(path: Path) -> bool:
    """Tell whether a path is a file that describes an archive; calibrations are YAML, too."""
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
def opened(config: Config, products: str = "") -> Generator[Material]:
    """Open what a file names; what stores hold is unpacked as long as the block lasts.

    `products` is the address of a store that is opened instead of the file's.
    """
    said = config.said
    store = products or _store_path(config)
    with tempfile.TemporaryDirectory(prefix="transect-archive-") as scratch:
        results = [each for name in said.results for each in results_of(config.path(name))]
        if store:
            results += store_results(store, Path(scratch))
        made = tuple(each for each in results if isinstance(each, Result))
        left = tuple(each for each in results if isinstance(each, LeftOut))
        yield Material(_recording(config), made, left)


def _store_path(config: Config) -> str:
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


def _recording(config: Config) -> Recording | None:
    if not config.said.recording:
        return None
    from transect import formats

    path = config.path(config.said.recording)
    if not path.exists():
        raise config.error(f"the recording {path} is not there", "recording")
    return formats.open(path)
