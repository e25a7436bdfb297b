"""One comparison as one portable file: statistics, the arrays of all figures, hashes, and the command.

A `.result` is a zip, stored and not compressed, of `result.json` and one `.npy` for each array; the same
comparison gives the same bytes.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from transect.base.arrays import Array
from transect.base.files import write_bytes
from transect.errors import ParseError
from transect.recording import FrameTree, Loss
from transect.types import Provenance, SourceFile, Trajectory

VERSION = 1
DOCUMENT, SUFFIX = "result.json", ".result"
NO_DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest that a zip can say."""


@dataclass(frozen=True, eq=False)
class Input:
    """One side of a comparison.

    Attributes
    ----------
    name : str
        What to call it in a table.
    path : str
        As it was given.
    stream : str
        Its name in the recording.
    frames : FrameTree
        What the recording knows of where things are.
    files : tuple of SourceFile
        That were read, with their sha256.
    flat : bool
        Whether it has no heights; both sides are then compared in the plane.
    run : mapping
        The configuration of the run that made it; empty if none is known.
    """

    name: str
    path: str
    stream: str
    trajectory: Trajectory
    frames: FrameTree = field(default_factory=FrameTree)
    files: tuple[SourceFile, ...] = ()
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()
    flat: bool = False
    run: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, eq=False)
class Result:
    """How good an estimate is.

    Attributes
    ----------
    estimate, reference : str
        Their names.
    metrics : mapping
        By relation (`ate`, `rpe`, ...): its statistics, in SI and radians.
    arrays : mapping of str to array
        What the figures are drawn from.
    alignment : mapping
        `mode`, `matrix` (4 x 4) and `scale`.
    pairs : mapping
        `matched`, `candidates`, how they were found, and the offset.
    truth : mapping
        Of the reference: `poses`, `length_m`, `height_m`, `duration_s`.
    notes : tuple of str
        What a person should know.
    failure : str
        Why there are no numbers, if there are none.
    """

    estimate: str
    reference: str
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])
    arrays: Mapping[str, Array] = field(default_factory=dict[str, Array])
    alignment: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pairs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    truth: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: tuple[str, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    failure: str = ""

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
                "provenance": asdict(self.provenance),
                "failure": self.failure,
            }
        )

    def save(self, path: Path | str) -> None:
        """Write the file."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
            text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
            _add(archive, DOCUMENT, text.encode())
            for name in sorted(self.arrays):
                _add(archive, f"{name}.npy", _npy(self.arrays[name]))
        write_bytes(path, content.getvalue())


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
        with zipfile.ZipFile(path) as archive:
            _refuse_compressed(archive)
            document = json.loads(archive.read(DOCUMENT))
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            arrays = {name.removesuffix(".npy"): _array(archive.read(name)) for name in names}
        if document["version"] != VERSION:
            raise ValueError(f"it is of version {document['version']}, this reads version {VERSION}")
        return _result(document, arrays)
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError) as error:
        raise ParseError(
            f"{path} is not a whole result file",
            where=str(path),
            why=str(error),
            hint="transect eval ... -o writes one",
        ) from error


def _result(document: dict[str, Any], arrays: dict[str, Array]) -> Result:
    said = document["provenance"]
    provenance = Provenance(
        sources=tuple(SourceFile(**source) for source in said["sources"]),
        tool=said["tool"],
        format=said["format"],
        command=said["command"],
        parameters=said["parameters"],
        parents=tuple(said["parents"]),
    )
    return Result(
        document["estimate"],
        document["reference"],
        document["metrics"],
        arrays,
        document["alignment"],
        document["pairs"],
        document["truth"],
        tuple(document["notes"]),
        provenance,
        document["failure"],
    )


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, NO_DATE)
    info.external_attr = 0o644 << 16
    archive.writestr(info, content)


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


def _refuse_compressed(archive: zipfile.ZipFile) -> None:
    """Raise for members that are larger than what is in the file: a result has none."""
    for info in archive.infolist():
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise ValueError(f"{info.filename} is compressed, which no result is")


# Independence


def dependence(reference: Input, estimate: Input) -> tuple[str, ...]:
    """Return what makes a comparison worth less: the truth was used, or is not independent."""
    said: list[str] = []
    run = estimate.run
    if run.get("used_truth"):
        said.append("used truth: the run was given a stream of role truth")
    consumed = {str(wire["stream"]) for wire in run.get("wiring", {}).values()}
    ours = {file.sha256 for file in reference.files}
    if shared := sorted(n for n in consumed if _sensor(n) == _sensor(reference.stream)):
        if ours & set(run.get("inputs", {}).values()):
            names = ", ".join(shared)
            said.append(f"not independent: the run consumed {names}, the truth is {reference.stream}")
    elif ours and ours == {file.sha256 for file in estimate.files} and reference.stream == estimate.stream:
        said.append("not independent: estimate and reference are the same stream of the same files")
    return tuple(said)


def _sensor(stream: str) -> str:
    """Return the sensor of a stream: ``Gnss`` of ``Gnss/Pose``; what is in truth/ is no sensor's."""
    first, _, rest = stream.strip("/").partition("/")
    return stream if first == "truth" or not rest else first
