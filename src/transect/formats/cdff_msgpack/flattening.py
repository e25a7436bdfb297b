"""Samples taken apart into one list per field, as pocolog2msgpack's `--flatten` writes them.

A field `sub` of a field `field` of the port `/task.port` has the key `/task.port/field/sub`. A list of maps
becomes a list per field of the maps: `/arm.joints/elements/position` is a list of numbers in each sample.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

Pack = Callable[[Any], bytes]
BATCH, BATCH_NUMBERS = 1024, 1_000_000
"""Samples, and numbers in their lists, that are held in memory at a time."""
_COPIED = 1 << 20


def fields_of(sample: Any, path: str = "") -> dict[str, Any]:
    """Return the leaves of a sample by path (`/field/sub`); one that is no map is its own, under ""."""
    if isinstance(sample, dict):
        below = cast("dict[str, Any]", sample)
        return {p: v for key, value in below.items() for p, v in fields_of(value, f"{path}/{key}").items()}
    if isinstance(sample, list) and sample and isinstance(sample[0], dict):
        each = [fields_of(element, path) for element in cast("list[Any]", sample)]
        return {p: [leaves[p] for leaves in each] for p in each[0]}
    return {path: sample}


class Flattened:
    """The fields of one stream's samples, packed and kept in a temporary file until they are written.

    Samples come one by one while fields are written one by one; a file between them keeps memory flat.
    """

    def __init__(self, samples: Iterable[Any], pack: Pack, spool: IO[bytes]) -> None:
        self._spool = spool
        self._batches: list[dict[str, tuple[int, int]]] = []
        for batch in _batches(samples):
            self._batches.append({path: self._keep(map(pack, values)) for path, values in batch.items()})

    def _keep(self, packed: Iterable[bytes]) -> tuple[int, int]:
        """Append to the temporary file; return where that begins and ends."""
        start = self._spool.tell()
        self._spool.writelines(packed)
        return start, self._spool.tell()

    @property
    def paths(self) -> list[str]:
        """The fields, "" for samples that have none, or if there are no samples."""
        return _lowest(path for batch in self._batches for path in batch) or [""]

    def write(self, path: str, out: Callable[[bytes], Any]) -> None:
        """Write the values of a field, without the header of their list."""
        for batch in self._batches:
            # A batch in which a list of maps is always empty has it under its own path: `[]`, as often.
            known = next(p for p in (path, *_above(path)) if p in batch)
            start, end = batch[known]
            self._spool.seek(start)
            while start < end:
                piece = self._spool.read(min(_COPIED, end - start))
                out(piece)
                start += len(piece)


def _above(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path


def _batches(samples: Iterable[Any]) -> Iterator[Mapping[str, list[Any]]]:
    """Yield the fields of some samples at a time, a value per sample."""
    batch: list[dict[str, Any]] = []
    numbers = 0
    for sample in samples:
        batch.append(fields_of(sample))
        numbers += sum(len(value) for value in batch[-1].values() if isinstance(value, list))
        if len(batch) == BATCH or numbers > BATCH_NUMBERS:
            yield _columns(batch)
            batch, numbers = [], 0
    if batch:
        yield _columns(batch)


def _columns(batch: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return a list per field; where a list of maps is empty, so are the lists of all its fields."""
    paths = _lowest(path for leaves in batch for path in leaves)
    return {path: [leaves.get(path, []) for leaves in batch] for path in paths}


def _lowest(paths: Iterable[str]) -> list[str]:
    """Return paths without those that are above others: a list counts by what it holds where it holds any."""
    found = list(dict.fromkeys(paths))
    above = {each for path in found for each in _above(path)}
    return [path for path in found if path not in above]


@contextmanager
def spooled(folder: Path) -> Generator[IO[bytes]]:
    """Open a temporary file in a folder, where there is room for the log too."""
    with tempfile.TemporaryFile(dir=folder) as spool:
        yield spool
