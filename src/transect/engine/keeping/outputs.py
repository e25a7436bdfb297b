"""What a run gives: the samples of its output ports, in memory or in files."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..ports import type_name
from .ports import PortWriter


class Output:
    """The samples of one output port, in memory.

    Attributes
    ----------
    name : str
    type : type
        Of one sample.
    values : list
    """

    files: Sequence[str] = ()

    def __init__(self, name: str, kind: type) -> None:
        self.name, self.type = name, kind
        self._times = array("q")
        self.values: list[Any] = []

    def add(self, t_ns: int, value: Any) -> None:
        """Take a sample."""
        self._times.append(t_ns)
        self.values.append(value)

    @property
    def t_ns(self) -> NDArray[np.int64]:
        """(n,) int64 nanoseconds."""
        return np.array(self._times, np.int64)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return zip(self._times, self.values, strict=True)

    def __repr__(self) -> str:
        return f"Output({self.name!r}, {self.type.__name__}, {len(self)} samples)"

    def begin_with(self, other: Output, count: int) -> None:
        """Take over the first samples of another output."""
        self._times[:], self.values[:] = other._times[:count], other.values[:count]


class Keeper(Protocol):
    """Takes the samples of one port; `files` are below the run's folder."""

    type: type
    files: Sequence[str]

    def add(self, t_ns: int, value: Any) -> None:
        """Take a sample."""
        ...

    def __len__(self) -> int: ...


class Count:
    """How many samples an output port gave, and nothing else: for a run that is not kept."""

    files: Sequence[str] = ()

    def __init__(self, kind: type) -> None:
        self.type, self._number = kind, 0

    def add(self, t_ns: int, value: Any) -> None:
        """Count a sample."""
        self._number += 1

    def __len__(self) -> int:
        return self._number


class FileKeeper(Count):
    """The samples of one output port, written as they come: flat memory, whatever the length of the run."""

    def __init__(self, folder: Path, name: str, kind: type, clock: str) -> None:
        super().__init__(kind)
        self._folder, self._writer = folder, PortWriter(folder, name, kind, clock)

    def add(self, t_ns: int, value: Any) -> None:
        """Write a sample."""
        self._writer.add(t_ns, value)
        super().add(t_ns, value)

    def close(self) -> None:
        """Finish the files."""
        self.files = sorted(str(file.relative_to(self._folder)) for file in self._writer.close())


def described(kept: Mapping[str, Keeper]) -> dict[str, dict[str, Any]]:
    """Return type, number of samples and files of each output, as plain values."""
    return {
        name: {"type": type_name(keeper.type), "samples": len(keeper), "files": list(keeper.files)}
        for name, keeper in kept.items()
    }
