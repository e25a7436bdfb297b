"""Whether a run that is kept would be the same run now: files, streams, calibration, code, packages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.engine import folder
from transect.engine.folder import Files, list_briefly

from .keeping import INPUTS, plain

if TYPE_CHECKING:
    from transect.engine import Compound
    from transect.recording import Recording

    from .product import Product
    from .store import ProductStore


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
    there = len(run.provenance.parameters["request"]["recording"]["paths"])
    if there != len(sources):
        return [f"it was made from {_count(there)}, not from {_count(len(sources))}"]
    read = {
        (part, file.path): file.sha256 for part, source in enumerate(sources) for file in source.files_read
    }
    return [*problems, *folder.find_changed_files(files, sources, read)]


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
    said = run.provenance.parameters
    config: Mapping[str, Any] = said["config"]
    recorded: Mapping[str, Any] = said["request"]["recording"]
    if another := why_another_recording(run, recording):
        yield another
        return
    if recorded["format"] != recording.format or recorded["options"] != plain(dict(recording.options)):
        yield "its recording was opened in another way"
    yield from _code_differences(said)
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
    """Tell whether a run was of another recording: no path and no samples of a stream are the same."""
    ends = [Path(path).parts for path in recorded["paths"]]  # where a relative one began is not known
    if any(source.path.absolute().parts[-len(end) :] == end for source in recording.sources for end in ends):
        return False
    return not any(name in recording and recording[name].sha256 == sha256 for name, sha256 in streams.items())


def why_another_recording(run: Product, recording: Recording) -> str:
    """Return that a product of kind `Run` was made from another recording, "" if it was not."""
    said = run.provenance.parameters
    recorded: Mapping[str, Any] = said["request"]["recording"]
    if not _is_another(said["config"]["streams"], recorded, recording):
        return ""
    return f"made from another recording, {recorded['name']} ({', '.join(recorded['paths'])})"


def _hash_calibration(recording: Recording) -> str:
    from transect.recording.content_hash import hash_calibration

    return hash_calibration(recording)


def _code_differences(said: Mapping[str, Any]) -> Iterator[str]:
    """Give what of the code is not what it was: transect, its plug-ins, the compound, or other packages."""
    from transect.engine import Compound
    from transect.engine.provenance import code_of_plugins, hash_of_package, versions
    from transect.errors import TransectError

    config: Mapping[str, Any] = said["config"]
    code = dict(config.get("code", {}))
    if code.pop("transect", "") != hash_of_package():
        yield f"made by another version of transect ({config['versions']['transect']}, with other sources)"
        return
    now, then = versions(), dict(config["versions"])
    if other := sorted(name for name in {*now, *then} if now.get(name) != then.get(name)):
        yield f"made with another version of {', '.join(other)}"
    try:
        found: Compound = Compound.of(config["compound"])
        plugins = code_of_plugins(found.graph(), said["request"]["recording"]["format"])
    except TransectError as error:
        yield f"the compound that made it is not there: {error.what}"
        return
    if found.to_yaml() != said["description"]:
        yield f"the description of {config['compound']} was changed"
    if plugins != code:
        changed = sorted(name for name in {*plugins, *code} if plugins.get(name) != code.get(name))
        yield f"made by other code of {', '.join(changed)}"
