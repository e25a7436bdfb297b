"""What a run gives: every output port in memory, or as a file that a person can use."""

from __future__ import annotations

from .ports import (
    Count,
    FileKeeper,
    Keeper,
    Output,
    PortWriter,
    describe_outputs,
    file_base,
    read_port,
    write_port,
)
from .tables import KeepingError

__all__ = [
    "Count", "FileKeeper", "Keeper", "KeepingError", "Output", "PortWriter", "describe_outputs", "file_base",
    "read_port", "write_port",
]  # fmt: skip
