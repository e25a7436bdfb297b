"""Poses and trajectories of a port as TUM files."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from transect.base.files import atomic_write, write_bytes
from transect.formats.tum.writing import header, pose_lines
from transect.types import Trajectory

BATCH = 4096
"""Poses held in memory before they are written."""
_UNTURNED = (0.0, 0.0, 0.0, 1.0)


class PoseSink:
    """One line per value that has a position: Pose, RigidBodyState, Odometry."""

    def __init__(self, base: Path, port: str, clock: str) -> None:
        self._path = base.with_name(f"{base.name}.tum")
        self._port, self._clock = port, clock
        self._stack = ExitStack()
        self._out: IO[bytes] | None = None
        self._times: list[int] = []
        self._poses: list[NDArray[np.float64]] = []

    def add(self, t_ns: int, value: Any) -> None:
        """Keep the pose of a value; one without is left out."""
        if value.position is None:
            return
        if self._out is None:
            self._out = self._stack.enter_context(atomic_write(self._path))
            self._out.write(_header(self._port, self._clock, value))
        turned = value.orientation if value.orientation is not None else _UNTURNED
        self._times.append(t_ns)
        self._poses.append(np.concatenate([value.position, turned]))
        if len(self._times) >= BATCH:
            self._flush(self._out)

    def close(self) -> list[Path]:
        """Finish the file."""
        if self._out is None:
            return []
        self._flush(self._out)
        self._stack.close()
        return [self._path]

    def _flush(self, out: IO[bytes]) -> None:
        poses = np.array(self._poses, dtype=np.float64).reshape(-1, 7)
        out.write(pose_lines(np.array(self._times, np.int64), list(poses.T)))
        self._times.clear()
        self._poses.clear()


class TrajectorySink:
    """Trajectories with their own times: the last as `PORT.tum`, each as `PORT/000000.tum` if several."""

    def __init__(self, base: Path, port: str) -> None:
        self._base, self._port = base, port
        self._files: list[Path] = []

    def add(self, t_ns: int, value: Trajectory) -> None:
        """Write one trajectory."""
        self._files.append(self._base / f"{len(self._files):06d}.tum")
        write_bytes(self._files[-1], _trajectory_text(self._port, value))

    def close(self) -> list[Path]:
        """Put the last one where it is looked for."""
        if not self._files:
            return []
        last = self._base.with_name(f"{self._base.name}.tum")
        if len(self._files) == 1:
            os.replace(self._files[0], last)
            self._base.rmdir()
            return [last]
        with self._files[-1].open("rb") as source, atomic_write(last) as out:
            shutil.copyfileobj(source, out)
        return [last, *self._files]


def _trajectory_text(port: str, value: Trajectory) -> bytes:
    turned = value.orientations if value.orientations is not None else np.tile(_UNTURNED, (len(value), 1))
    columns = [*np.asarray(value.positions, np.float64).T, *np.asarray(turned, np.float64).T]
    return _header(port, value.clock, value) + pose_lines(np.asarray(value.t_ns), columns)


def _header(port: str, clock: str, value: Any) -> bytes:
    """Return the comments that a file begins with: port, clock, and the frames where they are known."""
    frames = [f"{key} {name}" for key in ("frame", "child") if (name := getattr(value, key))]
    return header(port, clock) + (f"# {', '.join(frames)}\n".encode() if frames else b"")
