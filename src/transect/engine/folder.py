"""The folder of a run: what was run on what, how it went, and every output port as a file a person can use.

=================  =======================================================================================
`run.json`         status, digests, configuration (parameters, wiring, clocks, versions, hashes of the
                   inputs), statistics, errors
`inputs.sha256`    every file that was read, as `sha256sum` prints it
`compound.yaml`    the description
`statistics.txt`   the table
`trace.parquet`    time and checksum of every sample of every node output: what `diff` compares
`log.txt`          what nodes said
`graph.svg`        the compound, coloured by time
`verdicts.*`       how far the streams could be trusted, where the run acted on it
`PORT.*`           the outputs
=================  =======================================================================================
"""

from __future__ import annotations

import json
import os
import re
import shutil
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from transect.base import clocks, files
from transect.errors import ParseError, TransectError, UsageError
from transect.recording import arrow, parquet
from transect.recording.open_source import source_of
from transect.recording.place_maps import MERGED
from transect.recording.source import FileSource, Source

from .context import Conclusion, KeptMap
from .digest import Trace
from .output_files import FileKeeper, describe_outputs
from .provenance import LISTING, listing_of, read_listing

if TYPE_CHECKING:
    from .replay import Replay
    from .runs import Run, Status


RUN, TRACE, LATEST = "run.json", "trace.parquet", "latest"
_UNFINISHED = re.compile(r".+\.(failed|interrupted)(-\d+)?").fullmatch


class RunFolder:
    """A new folder that appears under its name when the run is complete, judged, and all of it is written.

    A run that failed or was interrupted is kept beside it, as `NAME.failed` or `NAME.interrupted`.

    Attributes
    ----------
    target : Path
        Its name.
    path : Path
        Where it is written meanwhile.
    """

    def __init__(self, target: Path) -> None:
        files.refuse_existing(target, hint="choose a new folder, or remove this one")
        self.target = target
        self._staging = ExitStack()
        self.path = self._staging.enter_context(files.staged(target))
        self.path.mkdir()
        self._run: Run | None = None

    def write(self, run: Run, replay: Replay) -> None:
        """Finish the outputs and write the rest; more may be written to `path` until it is closed."""
        for keeper in replay.kept.values():
            if isinstance(keeper, FileKeeper):
                keeper.close()
        _write_json(self.path / RUN, run, describe_outputs(replay.kept))
        files.write_text(self.path / "compound.yaml", replay.playback.compound.to_yaml())
        if run.inputs:
            files.write_bytes(self.path / LISTING, listing_of(run.inputs).encode("utf-8", "surrogateescape"))
        files.write_text(self.path / "statistics.txt", f"{run.stats}\n")
        lines = [f"{clocks.text_from_ns(t, run.clock)} {node}: {text}\n" for t, node, text in run.log]
        files.write_text(self.path / "log.txt", "".join(lines))
        write_traces(self.path / TRACE, run.traces)
        if replay.verdicts is not None:
            replay.verdicts.write(self.path, replay.flow.now_ns)
        _draw(self.path / "graph.svg", run, replay)
        self._run = run

    def close(self, error: BaseException | None = None) -> Path | None:
        """Give the folder its name and return it; remove one that was not written, and return None.

        Parameters
        ----------
        error : BaseException, optional
            What ended the work on the folder before it was complete.
        """
        run = self._run
        if run is None:
            shutil.rmtree(self.path, ignore_errors=True)
        elif run.folder == self.path:
            run.folder = self._final_name(run.status if error is None else status_of(error))
            self.path.rename(self.path.with_name(run.folder.name))
        self._staging.close()
        if run is not None and run.folder == self.target:
            _link_latest(self.target)
        return run.folder if run is not None else None

    def _final_name(self, status: Status) -> Path:
        """Return the name for a run that ended so; a folder that is there is never replaced."""
        target = self.target
        if status == "complete" and not (target.is_dir() and any(target.iterdir())):
            return target
        numbers = ("" if number == 1 else f"-{number}" for number in count(1))
        names = (target.with_name(f"{target.name}.{status}{number}") for number in numbers)
        return next(name for name in names if not os.path.lexists(name))

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close(error)


def status_of(error: BaseException) -> Status:
    """Return what became of a run that was ended by an error, by Ctrl-C or by a signal."""
    return "failed" if isinstance(error, Exception) else "interrupted"


def is_unfinished(folder: Path) -> bool:
    """Return from its name whether a folder is of a run that failed or was interrupted."""
    return _UNFINISHED(folder.name) is not None


def _write_json(path: Path, run: Run, outputs: Any) -> None:
    """Write what is known of a run; the same run gives the same text but for `statistics`."""
    content = {
        "name": run.name,
        "status": run.status,
        "digest": run.digest,
        "ports": dict(run.ports),
        "outputs": outputs,
        "request": run.request,
        "config": run.config,
        "errors": [str(error) for error in run.errors],
        "conclusions": [asdict(conclusion) for conclusion in run.conclusions],
        "statistics": run.stats.to_dict() if run.stats else None,
    }
    files.write_text(path, json.dumps(content, indent=1, default=str, ensure_ascii=False) + "\n")


def write_traces(path: Path, traces: Any) -> None:
    """Write time and checksum of every sample, port after port."""
    names = sorted(traces)
    port_index = np.repeat(np.arange(len(names), dtype=np.int32), [len(traces[name]) for name in names])
    port = pa.DictionaryArray.from_arrays(arrow.from_numpy(port_index), arrow.strings(names))
    times = np.concatenate([np.zeros(0, np.int64), *(np.array(traces[n].times, np.int64) for n in names)])
    checks = np.concatenate([np.zeros(0, np.uint32), *(np.array(traces[n].checks, np.uint32) for n in names)])
    columns = {"port": port, "t_ns": arrow.from_numpy(times), "crc32": arrow.from_numpy(checks)}
    with files.atomic_write(path) as out:
        parquet.write_table(pa.table(columns), out)


def read_content(folder: Path) -> tuple[dict[str, Any], dict[str, Trace]]:
    """Read what `run.json` says of a run, and the traces of its ports."""
    path = folder / RUN
    if not folder.exists():
        raise UsageError(f"there is no run {folder}", hint="transect run ... -o writes one")
    if not path.is_file():
        raise UsageError(f"{folder} is not the folder of a run", why=f"it has no {RUN}", hint="-o writes one")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return content, read_traces(folder / TRACE, content["ports"])
    except (ParseError, KeyError, ValueError, OSError, pa.ArrowException) as error:
        raise damaged_run(folder, error) from error


def damaged_run(folder: Path, error: Exception) -> ParseError:
    """Return the error that says that the folder of a run has a file that cannot be understood."""
    return ParseError(f"{folder} is not a whole run", where=str(folder / RUN), why=str(error))


def read_traces(path: Path, ports: Iterable[str]) -> dict[str, Trace]:
    """Read time and checksum of every sample of some ports from the file that `write_traces` wrote."""
    traces = {name: Trace(array("q"), array("I")) for name in ports}
    table = parquet.read_table(path, str(path))
    names = [name for chunk in table.column("port").chunks for name in chunk.dictionary_decode().to_pylist()]
    times, checks = arrow.numbers(table, "t_ns"), arrow.numbers(table, "crc32")
    for name, trace in traces.items():
        mine = np.fromiter((each == name for each in names), np.bool_, len(names))
        trace.times.extend(times[mine].tolist())
        trace.checks.extend(checks[mine].tolist())
    return traces


def _draw(path: Path, run: Run, replay: Replay) -> None:
    """Draw the compound, coloured by where the time went."""
    from transect.draw.graph import svg_text

    from .picture import picture_of

    shares = run.stats.shares if run.stats else {}
    compound = replay.playback.compound
    picture = picture_of(compound.text, compound.implementation, shares, compound.catalogue)
    files.write_text(path, svg_text(picture))


def _link_latest(target: Path) -> None:
    """Let `latest` beside the folder lead to it; something else of that name is left alone."""
    link = target.parent / LATEST
    if link.exists() and not link.is_symlink():
        return
    if target.name == LATEST:
        return
    files.link_folder(link, target.name)


MAX_NAMED = 3
"""Changed files that a message names."""
Files = Mapping[tuple[int, str], str]
"""The sha256 of each file, by the part of a joined recording and by path."""


@dataclass(frozen=True)
class Validity:
    """What a user should know before using the result of a run."""

    name: str = ""  # of the folder
    failures: tuple[str, ...] = ()  # why the result must not be trusted
    changes: tuple[str, ...] = ()  # a sentence for each input that is not what it was

    @property
    def outdated(self) -> str:
        """One sentence that names the changed inputs; "" if there are none."""
        changed = f"the inputs of {self.name} changed since it ran: {list_briefly(self.changes)}"
        return changed if self.changes else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """All of it, a sentence each: failures first."""
        failures = tuple(f"the result of {self.name} must not be trusted: {text}" for text in self.failures)
        return (*failures, self.outdated) if self.changes else failures


def check_run(path: Path | str) -> Validity:
    """Return whether a run succeeded and whether its inputs are unchanged.

    Parameters
    ----------
    path : path
        Folder of a run or a zip of it, or a file or map of places in it. Anything else has nothing to report.

    Raises
    ------
    ParseError
        If what describes the run is damaged.
    """
    found = _find_description(Path(path))
    if found is None:
        return Validity()
    source, name = found
    try:
        document: Any = json.loads(source.read(name))
        if name == MERGED:
            return Validity(source.path.name, tuple(map(str, document["failures"])))
        listing = source.read(LISTING).decode("utf-8", "surrogateescape") if LISTING in source else ""
        changes = _list_changes(document, listing, source.path)
        return Validity(source.path.resolve().name, tuple(_list_failures(document)), tuple(changes))
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        where, why = str(source.path / name), f"{type(error).__name__}: {error}"
        raise ParseError(f"{source.path} is not a whole run", where=where, why=why) from error


def read_kept_map(path: Path | str, extend: bool = False) -> KeptMap:
    """Read the map of an earlier run, given its folder or that of the run, and check the run."""
    from transect.recording.place_maps import digest_of_map, read_map

    checked = check_run(path)
    return KeptMap(read_map(path), str(path), digest_of_map(path), extend, checked.failures, checked.outdated)


class _Folder:
    """The few files of a run's folder that are needed here: its outputs, maybe thousands, are not listed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __contains__(self, name: str) -> bool:
        return (self.path / name).is_file()

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()


def _find_description(path: Path) -> tuple[_Folder | Source, str] | None:
    """Return the folder, or the zip, of the run that a path belongs to, and the file that describes it."""
    places: list[_Folder | Source] = [_Folder(path), _Folder(path.parent)]
    if path.suffix == ".zip" and path.is_file():
        try:
            places = [source_of(path)]
        except TransectError:  # whoever opens it says what is wrong
            return None
    return next(((place, name) for place in places for name in (RUN, MERGED) if name in place), None)


def _list_failures(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the result of a run is not to be trusted."""
    status = document.get("status", "complete")
    if status != "complete":
        errors = [str(error).splitlines()[0] for error in document.get("errors", ())][:1]
        yield ": ".join([f"the run {'was ' if status == 'interrupted' else ''}{status}", *errors])
    for record in document.get("conclusions", ()):
        if (conclusion := Conclusion(**record)).bad:
            yield conclusion.text


def _list_changes(document: Mapping[str, Any], listing: str, folder: Path) -> Iterator[str]:
    """Yield a sentence for each input of a run that is there but not what it was.

    A recording or map that is not there at all is no change: results are copied without them.
    """
    request: Mapping[str, Any] = document.get("request", {})
    recorded: Mapping[str, Any] = request.get("recording", {})
    files = read_listing(listing)
    sources = [_open_source(find_recorded(path, folder)) for path in recorded.get("paths", ())]
    beside = {
        (int(part), str(name)): _open_source(find_recorded(path, folder))
        for part, name, path in recorded.get("beside", ())
    }
    known = [
        source if source is not None and _has_any(source, part, files) else None
        for part, source in enumerate(sources)
    ]
    yield from find_changed_files(files, known, beside)
    if "map" in request:
        digest = str(document["config"]["map"]["digest"])
        if _is_other_map(find_recorded(request["map"], folder), digest):
            yield f"the map {request['map']} was changed"


def find_recorded(path: str, folder: Path) -> str:
    """Return a path that a run recorded as it is now.

    One that is not there from here is looked for from the folders above the run: it was typed there.
    """
    folders = [Path(), *folder.resolve().parents]
    return str(next((found for up in folders if (found := up / path).exists()), path))


def _open_source(path: str) -> Source | None:
    try:
        return source_of(path).root
    except TransectError:
        return None


def _has_any(source: Source, part: int, files: Files) -> bool:
    """Return whether a source has a file of that part; else another source is at the same path."""
    return isinstance(source, FileSource) or any(name in source for each, name in files if each == part)


def _is_other_map(path: str, digest: str) -> bool:
    """Return whether there is a map that has changed or is damaged."""
    from transect.recording.place_maps import PlaceMapError, digest_of_map

    try:
        return digest_of_map(path) != digest
    except PlaceMapError:
        return True
    except TransectError:  # there is no map
        return False


def find_changed_files(
    files: Files, sources: Sequence[Source | None], beside: Mapping[tuple[int, str], str | Source | None]
) -> Iterator[str]:
    """Yield a sentence for each file that was read and is gone or changed.

    Parameters
    ----------
    files : mapping
        What was read.
    sources : sequence of Source or None
        Of each part of the recording; the files of one that is None are not compared.
    beside : mapping
        Where files are that a reader took from outside of the sources, or their sha256; None if gone.
    """
    from transect.recording.file_hashes import hashes_kept_together

    with hashes_kept_together():
        for (part, name), sha256 in sorted(files.items()):
            if part >= len(sources):
                yield f"{name} belongs to no part of the recording"
                continue
            source = sources[part]
            if source is None:
                continue
            now = _hash_now(source, name, beside.get((part, name), source))
            if now is None:
                yield f"{name} is gone"
            elif now != sha256:
                yield f"{name} was changed ({sha256[:12]} then, {now[:12]} now)"


def _hash_now(source: Source, name: str, beside: str | Source | None) -> str | None:
    """Return the hash of a file of a recording, or of one beside it that its reader took; None if it is gone.

    Names may have been written by anybody: only files that a source lists are read.
    """
    place = source if name in source else beside
    if not isinstance(place, Source):
        return place
    try:
        if name in place:
            return place.sha256(name)
        return place.sha256(place.names[0]) if isinstance(place, FileSource) else None  # it has a new name
    except (OSError, TransectError):
        return None


def list_briefly(problems: Sequence[str]) -> str:
    """Return the first few of many sentences as one."""
    more = len(problems) - MAX_NAMED
    return "; ".join(problems[:MAX_NAMED]) + (f"; and {more} more" if more > 0 else "")
