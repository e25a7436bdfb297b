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
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from transect.base import clocks, files
from transect.errors import ParseError, UsageError
from transect.recording import arrow, parquet

from .comparing import Trace
from .inputs import LISTING, listing_of
from .keeping import FileKeeper, describe_outputs

if TYPE_CHECKING:
    from .replay import Replay
    from .run import Run, Status

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
        files.write_text(self.path / "compound.yaml", replay.compound.to_yaml())
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
    """Tell by its name whether a folder is what was kept of a run that failed or was interrupted."""
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
    which = np.repeat(np.arange(len(names), dtype=np.int32), [len(traces[name]) for name in names])
    port = pa.DictionaryArray.from_arrays(arrow.from_numpy(which), arrow.strings(names))
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
    compound = replay.compound
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
