"""One comparison as one portable file: statistics, the arrays of all figures, hashes, and the command.

A `.result` is a zip, stored and not compressed, of `result.json` and one `.npy` for each array; the same
comparison gives the same bytes.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from transect.base.arrays import Array
from transect.base.files import write_bytes, zip_of
from transect.errors import ParseError, UsageError
from transect.recording import FrameTree, Loss, arrow, parquet, source_of
from transect.types import Provenance, SourceFile, Trajectory

WARNING = "warning: "
"""Begins the notes that speak against the run that a result is of."""
RUN = "run.json"
"""The file that says what a run was."""
VERSION = 1
DOCUMENT, SUFFIX = "result.json", ".result"
POSE, CORRECTED, LOCATED = "pose", "trajectory", "located"
"""Ports of a run: poses at the time, poses corrected at the end, and whether a SLAM knows where it is."""


@dataclass(frozen=True, eq=False)
class Input:
    """One side of a comparison."""

    name: str  # what to call it in a table
    path: str  # as it was given
    stream: str  # its name in the recording
    trajectory: Trajectory
    frames: FrameTree = field(default_factory=FrameTree)  # what the recording knows of where things are
    files: tuple[SourceFile, ...] = ()  # that were read, with their sha256
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()
    flat: bool = False  # whether it has no heights; both sides are then compared in the plane
    # The configuration of the run that made it; empty if none is known
    run: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, eq=False)
class Result:
    """How good an estimate is."""

    # Their names
    estimate: str
    reference: str
    # By relation (`ate`, `rpe`, ...): its statistics, in SI and radians
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])
    arrays: Mapping[str, Array] = field(default_factory=dict[str, Array])  # what the figures are drawn from
    # `mode`, `matrix` (4 x 4) and `scale`
    alignment: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # `matched`, `candidates`, how they were found, and the offset
    pairs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # Of the reference: `poses`, `length_m`, `height_m`, `duration_s`, and `view`, its axes on a map
    truth: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: tuple[str, ...] = ()  # what a person should know
    provenance: Provenance = field(default_factory=Provenance)
    failure: str = ""  # why there are no numbers, if there are none

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the arrays as plain values; numbers that are not known are None."""
        return plain(
            {
                "version": VERSION,
                "estimate": self.estimate,
                "reference": self.reference,
                "metrics": self.metrics,
                "alignment": self.alignment,
                "pairs": self.pairs,
                "truth": self.truth,
                "notes": self.notes,
                "provenance": self.provenance.to_dict(),
                "failure": self.failure,
            }
        )

    def save(self, path: Path | str) -> None:
        """Write the file."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        arrays = {f"{name}.npy": _npy(self.arrays[name]) for name in sorted(self.arrays)}
        write_bytes(path, zip_of({DOCUMENT: text.encode(), **arrays}))


def plain(value: Any) -> Any:
    """Return a value as JSON has it: lists, dicts, and None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def load_result(path: Path | str) -> Result:
    """Read a result file.

    Raises
    ------
    ParseError
        If it is not one, is damaged, or was written by a newer version.
    """
    try:
        source = source_of(path)
        names = source.names
        if source.refused:
            raise ValueError(source.refused[0].reason)
        document = json.loads(source.read(DOCUMENT))
        arrays = {n.removesuffix(".npy"): _array(source.read(n)) for n in names if n.endswith(".npy")}
        if document["version"] != VERSION:
            raise ValueError(f"it is of version {document['version']}, this reads version {VERSION}")
        return _result(document, arrays)
    except ParseError as error:
        why = f"{error.what}: {error.why}" if error.why else error.what
        raise _not_whole(path, why) from error
    except (KeyError, TypeError, ValueError, SyntaxError, RecursionError, EOFError) as error:
        raise _not_whole(path, str(error)) from error


def _not_whole(path: Path | str, why: str) -> ParseError:
    return ParseError(
        f"{path} is not a whole result file",
        where=str(path),
        why=why,
        hint="transect eval ... -o writes one",
    )


def _result(document: dict[str, Any], arrays: dict[str, Array]) -> Result:
    provenance = document["provenance"]
    provenance = Provenance(
        sources=tuple(SourceFile(**source) for source in provenance["sources"]),
        tool=provenance["tool"],
        format=provenance["format"],
        command=provenance["command"],
        parameters=provenance["parameters"],
        parents=tuple(provenance["parents"]),
    )
    return Result(
        _of(str, document, "estimate"),
        _of(str, document, "reference"),
        {name: _of(dict, document["metrics"], name) for name in _of(dict, document, "metrics")},
        arrays,
        _of(dict, document, "alignment"),
        _of(dict, document, "pairs"),
        _of(dict, document, "truth"),
        tuple(map(str, document["notes"])),
        provenance,
        _of(str, document, "failure"),
    )


def _of(kind: type, document: dict[str, Any], name: str) -> Any:
    """Return a part of the document; one of another type is a TypeError."""
    if not isinstance(document[name], kind):
        raise TypeError(f"its {name} is no {kind.__name__}")
    return document[name]


def _npy(array: Array) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.ascontiguousarray(array), (1, 0), allow_pickle=False)
    return content.getvalue()


def _array(content: bytes) -> Array:
    """Return the array of an `.npy`, if it has as many bytes as it says: no memory is taken before."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array is of another version of .npy")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    body = memoryview(content)[stream.tell() :]
    if fortran or dtype.hasobject or math.prod(shape) * dtype.itemsize != len(body):
        raise ValueError(f"an array of shape {shape} and type {dtype} has {len(body)} bytes")
    return np.frombuffer(body, dtype).reshape(shape)


# Results of runs

FIGURES = "evaluation"  # the folder of the figures, below the run's
HEIGHT_MAP = "dem"  # the port of a compound's height map
SUCCESS = "success"  # the port by which a run says of each attempt whether it found a pose


def port_of_path(folder: Path) -> str:
    """Return the port by whose poses a run is judged and drawn: those of a SLAM corrected by all its loops.

    Its `pose` is where the robot took itself to be at the time, before the loops that came later.
    """
    is_slam = any(folder.glob(f"{LOCATED}.*")) and (folder / f"{CORRECTED}.tum").is_file()
    return CORRECTED if is_slam else POSE


def count_successes(folder: Path) -> dict[str, dict[str, int]]:
    """Return how many of the attempts of a run succeeded, nothing if the run has no such port."""
    file = folder / f"{SUCCESS}.parquet"
    if not file.is_file():
        return {}
    values = arrow.numbers(parquet.read_table(file, str(file)), "value")
    return {"found": {"count": int(np.count_nonzero(values)), "of": len(values)}}


def results_of_run(folder: Path) -> list[Path]:
    """Return the result files of a run, that of its path first."""
    first = port_of_path(folder)
    return sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: (file.stem != first, file.stem))


# Several results


def save_results(results: Sequence[Result], out: Path) -> list[Path]:
    """Write one result to the file `out` (``*.result``), or each to its own file in the folder `out`."""
    refuse_one_file_for_many(out, len(results))
    paths = [out if out.suffix == SUFFIX else out / f"{short_name(r.estimate)}{SUFFIX}" for r in results]
    for result, path in zip(results, paths, strict=True):
        result.save(path)
    return paths


def refuse_one_file_for_many(out: Path, estimates: int) -> None:
    """Raise if results cannot be written to `out`; called before any work is done."""
    if out.suffix == SUFFIX and estimates > 1:
        raise UsageError(f"{out} cannot hold {estimates} results", hint="-o DIR writes one for each estimate")
    if out.suffix != SUFFIX and out.is_file():
        raise UsageError(f"{out} is a file", hint=f"-o FILE{SUFFIX}, or a folder")


def load_results(paths: Sequence[Path | str]) -> list[Result]:
    """Read result files, and those of folders; no two have the same reference and estimate."""
    files = [file for path in paths for file in result_files(Path(path))]
    warnings = {folder: warnings_of(folder) for folder in {file.parent for file in files}}
    results = [_with_notes(load_result(file), warnings[file.parent]) for file in files]
    for reference in dict.fromkeys(r.reference for r in results):
        mine = [k for k, r in enumerate(results) if r.reference == reference]
        names = distinct_names([results[k].estimate for k in mine], [str(files[k]) for k in mine])
        for k, name in zip(mine, names, strict=True):
            results[k] = replace(results[k], estimate=name)
    return results


def _with_notes(result: Result, notes: tuple[str, ...]) -> Result:
    return replace(result, notes=(*notes, *result.notes)) if notes else result


def warnings_of(path: Path) -> tuple[str, ...]:
    """Return notes on what speaks against using what a run wrote: it failed, or its inputs changed.

    Parameters
    ----------
    path : Path
        The folder of a run or a file in it; there are none on anything else.
    """
    if not any((place / RUN).is_file() for place in (path, path.parent)):
        return ()  # without importing the engine
    from transect.engine.folder import check_run

    return tuple(f"{WARNING}{text}" for text in check_run(path).warnings)


def result_files(path: Path) -> list[Path]:
    """Return a file, or the result files of a folder and those below it."""
    if path.is_file():
        return [path]
    inside = path.rglob(f"*{SUFFIX}") if path.is_dir() else ()
    files = [file for file in inside if not file.parent.is_symlink()]  # `latest` is one of the others
    first = {folder: f"{port_of_path(folder)}{SUFFIX}" for folder in {file.parent for file in files}}
    found = sorted(files, key=lambda file: (file.parent, file.name != first[file.parent], file.name))
    if not found:
        what = f"{path} has no results" if path.is_dir() else f"there is no {path}"
        raise UsageError(
            what, hint="transect run NAME PATH -o DIR and transect eval REF EST -o DIR write results"
        )
    return found


def distinct_names(names: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Return names that tell things apart: before equal ones stands the part of their path that differs.

    Parameters
    ----------
    paths : sequence of str
        The file of each; the last folders are used, as many as are needed, and then the name of the file.
    """
    distinct = list(names)
    for name in {name for name in names if names.count(name) > 1}:
        alike = [k for k, each in enumerate(names) if each == name]
        for k, prefix in zip(alike, _distinct_ends([Path(paths[k]).resolve() for k in alike]), strict=True):
            distinct[k] = f"{prefix}/{name}"
    if len(set(distinct)) == len(distinct):
        return distinct
    return [f"{name} ({number})" for number, name in enumerate(distinct, 1)]


def _distinct_ends(files: Sequence[Path]) -> list[str]:
    """Return the shortest ends of the folders that differ; of files in one folder, with their names."""
    folders = [file.parent.parts for file in files]
    for depth in range(1, max(map(len, folders)) + 1):
        ends = ["/".join(parts[-depth:]) for parts in folders]
        if len(set(ends)) == len(ends):
            return ends
    return [f"{file.parent.name}/{file.stem}" for file in files]


def short_name(name: str) -> str:
    """Return the name of an estimate as the name of a file, without blanks."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("._") or "estimate"


# Independence


def dependence(reference: Input, estimate: Input) -> tuple[str, ...]:
    """Return what makes a comparison worth less: truth or hindsight was used, or is not independent."""
    reasons: list[str] = []
    run = estimate.run
    if run.get("used_truth"):
        reasons.append("used truth: the run was given a stream of role truth")
    if run.get("verdicts", {}).get("hindsight"):
        reasons.append("hindsight: the run was given verdicts that knew what came later")
    consumed = {str(wire["stream"]) for wire in run.get("wiring", {}).values()}
    reference_hashes = {file.sha256 for file in reference.files}
    if shared := sorted(n for n in consumed if _sensor(n) == _sensor(reference.stream)):
        if reference_hashes & set(run.get("inputs", {}).values()):
            names = ", ".join(shared)
            reasons.append(f"not independent: the run consumed {names}, the truth is {reference.stream}")
    elif (
        reference_hashes
        and reference_hashes == {file.sha256 for file in estimate.files}
        and reference.stream == estimate.stream
    ):
        reasons.append("not independent: estimate and reference are the same stream of the same files")
    return tuple(reasons)


def _sensor(stream: str) -> str:
    """Return the sensor of a stream: ``Gnss`` of ``Gnss/Pose``; what is in truth/ is no sensor's."""
    first, _, rest = stream.strip("/").partition("/")
    return stream if first == "truth" or not rest else first
