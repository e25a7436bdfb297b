"""Verdicts for a run: computed during playback, or read from a table.

`engine.trust` defines how a run uses verdicts. Their sources are:

- `PlaybackVerdicts` evaluates the checks of a window when its first sample is played. Until the end of the
  window only the masks of its samples are available; scores and states follow afterwards.
- `RecordedVerdicts` contains the verdicts of a table. A sample uses those of its own window, which is not
  causal.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from transect.base.arrays import Ints, Mask
from transect.base.clocks import NS
from transect.engine.trust import StreamVerdicts, VerdictSource
from transect.errors import UsageError
from transect.recording import Recording, Stream
from transect.types import Verdict

from .config import Config, load_config, plain_config
from .rules import roll_up, unite
from .runner import Session, collect, sessions_of
from .table import VerdictTable
from .windows import Grid, WindowedStream

VERDICTS = "verdicts"
"""Stem of the file names in the folder of a run."""
GroupedVerdict = tuple[Verdict, str]
"""A verdict and the group of its check."""


def choose_source(
    check: bool | Config | str | Path = False, verdicts: VerdictTable | str | Path | None = None
) -> VerdictSource | None:
    """Return the source of a run's verdicts; None if the run trusts all sensors."""
    if verdicts is not None:
        if check:
            raise UsageError("a run can check, or be given verdicts, not both", hint="use only one of them")
        table = verdicts if isinstance(verdicts, VerdictTable) else VerdictTable.read(verdicts)
        origin = {} if isinstance(verdicts, VerdictTable) else {"sha256": _sha256(Path(verdicts))}
        return lambda recording, streams: RecordedVerdicts(table, recording, streams, origin)
    if check is False:
        return None
    config = load_config(check) if isinstance(check, str | Path) else check if check is not True else None
    return lambda recording, streams: PlaybackVerdicts(recording, streams, config)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def known_of(
    verdicts: Sequence[GroupedVerdict], masked: dict[str, int], explained_ns: int = 10 * NS
) -> StreamVerdicts:
    """Return the combined verdict on one window of a stream, from at least one verdict.

    Parameters
    ----------
    masked : dict of str to int
        By reason: the end (ns) of the newest window in which a check gave a region for it; updated.
    explained_ns : int
        Time after masked samples for which verdicts with the same reason are ignored, as checks use past
        samples, too.
    """
    counted = [each for each in verdicts if not each[0].muted]
    masked.update({v.reason: v.t1_ns for v, _ in counted if v.region is not None and v.reason})
    rest = [
        (v, g)
        for v, g in counted
        if v.region is None and not (v.reason in masked and v.t0_ns - masked[v.reason] <= explained_ns)
    ]
    return StreamVerdicts(_combine(counted, verdicts[0][0]), _combine(rest, verdicts[0][0]))


def _combine(grouped: Sequence[GroupedVerdict], window: Verdict) -> Verdict:
    """Return the combination of verdicts on a window, UNKNOWN without any; `window` is any verdict on it."""
    verdicts = [verdict for verdict, _ in grouped]
    scores = [verdict.score for verdict in verdicts]
    total = roll_up(
        [group for _, group in grouped],
        scores,
        [v.state for v in verdicts],
        [v.raw for v in verdicts],
        [v.reason for v in verdicts],
    )
    unknown = Verdict(window.sensor, window.stream, window.t0_ns, window.t1_ns)
    at = unknown if total.at is None else verdicts[total.at]
    region = unite([v.region for v in verdicts if v.region is not None])
    return replace(at, state=total.state, raw=total.raw, score=total.score, region=region)


def mask_of_window(verdicts: Sequence[GroupedVerdict]) -> Mask | None:
    """Return the parts (n, k) of a window's n samples that any check masks; None if nothing is masked."""
    regions = [v.region for v, _ in verdicts if v.region is not None and not v.muted]
    return unite([region for region in regions if region.ndim == 2 and region.any()])


class PlaybackVerdicts:
    """Verdicts of checks that are evaluated during playback, one window ahead.

    Parameters
    ----------
    recording : Recording
    streams : collection of str
        Streams to judge; the others are used for comparison only.
    config : Config, optional
    """

    def __init__(self, recording: Recording, streams: Collection[str], config: Config | None = None) -> None:
        self._sessions, self._config = sessions_of(recording, config, judged=set(streams)), config
        self._of = {job.name: _JudgedStream(s, job.windowed) for s in self._sessions for job in s.jobs}
        self._lock = RLock()

    def known_at(self, stream: str, t_ns: int) -> StreamVerdicts | None:
        """Return the combined verdict on the newest window that had ended at a time."""
        judged = self._of.get(stream)
        if judged is None:
            return None
        edges = judged.session.grid.edges
        index = min(int(np.searchsorted(edges, t_ns, "right")) - 2, len(edges) - 2)
        if index < 0:
            return None
        self._judge_until(judged, index)
        return judged.known[index]

    def mask_of(self, stream: str, row: int) -> Mask | None:
        """Return the masked parts of a sample, by the checks of its own window."""
        judged = self._of.get(stream)
        if judged is None:
            return None
        bounds = judged.windowed.bounds
        index = bisect_right(bounds, row) - 1
        self._judge_until(judged, index)
        mask = judged.masks[index]
        return None if mask is None else mask[row - bounds[index]]

    def _judge_until(self, judged: _JudgedStream, index: int) -> None:
        """Judge the windows of a stream's session up to one, in order; safe for several threads."""
        if index < len(judged.known):
            return
        session = judged.session
        with self._lock:
            while len(judged.known) <= index:
                verdicts = zip(session.judge(len(judged.known)), session.jobs, strict=True)
                found: dict[str, list[GroupedVerdict]] = {}
                for verdict, job in verdicts:
                    found.setdefault(verdict.stream, []).append((verdict, job.check.group))
                for name, each in found.items():
                    self._of[name].add(each)

    def describe(self) -> dict[str, Any]:
        """Return the checks, their versions and their configuration."""
        checks = {job.check.id: job.check.version for each in self._sessions for job in each.jobs}
        config = {} if self._config is None else {"config": plain_config(self._config)}
        return {"hindsight": False, "checks": dict(sorted(checks.items())), **config}

    def write(self, folder: Path, until_ns: int) -> None:
        """Write the verdicts on all windows up to a time."""
        for judged in self._of.values():
            grid = judged.session.grid
            index = min(int(np.searchsorted(grid.edges, until_ns, "right")), len(grid)) - 1
            self._judge_until(judged, index)
        _write(collect(self._sessions), folder)


class _JudgedStream:
    """Combined verdicts and masks of one stream so far, window by window."""

    def __init__(self, session: Session, windowed: WindowedStream[object]) -> None:
        self.session, self.windowed = session, windowed
        self.known: list[StreamVerdicts] = []
        self.masks: list[Mask | None] = []
        self._masked: dict[str, int] = {}

    def add(self, verdicts: Sequence[GroupedVerdict]) -> None:
        """Add the verdicts on the next window."""
        self.masks.append(mask_of_window(verdicts))
        self.known.append(known_of(verdicts, self._masked))


class RecordedVerdicts:
    """Verdicts of a table; each applies to the samples of its own window.

    Parameters
    ----------
    table : VerdictTable
    recording : Recording
        Recording that is played; it may be a part of the one that was checked.
    streams : collection of str
        Streams that are used.
    origin : mapping
        Origin of the table, for the run's configuration.
    """

    def __init__(
        self,
        table: VerdictTable,
        recording: Recording,
        streams: Collection[str],
        origin: Mapping[str, str] | None = None,
    ) -> None:
        self.table, self._origin = table, dict(origin or {})
        windows: dict[str, dict[int, list[GroupedVerdict]]] = {name: {} for name in streams}
        for verdict, group in zip(table, table.column("group"), strict=True):
            if verdict.stream in windows:
                windows[verdict.stream].setdefault(verdict.t0_ns, []).append((verdict, group))
        self._of = {name: _RecordedStream(recording[name], found) for name, found in windows.items() if found}
        if not self._of:
            raise UsageError(
                "the verdicts are on none of the streams that are used",
                why=f"used are {', '.join(sorted(streams))}",
                hint=f"transect check {recording.typed} -o verdicts  writes them for this recording",
            )
        for name in self._of:
            _refuse_other_samples(table, recording, name)

    def known_at(self, stream: str, t_ns: int) -> StreamVerdicts | None:
        """Return the combined verdict on the window that contains a time."""
        return self._of[stream].known_at(t_ns) if stream in self._of else None

    def mask_of(self, stream: str, row: int) -> Mask | None:
        """Return the masked parts of a sample."""
        return self._of[stream].mask_of(row) if stream in self._of else None

    def describe(self) -> dict[str, Any]:
        """Return that the verdicts are not causal, and their origin."""
        return {"hindsight": True, **self._origin}

    def write(self, folder: Path, until_ns: int) -> None:
        """Write the whole table."""
        _write(self.table, folder)


def _refuse_other_samples(table: VerdictTable, recording: Recording, name: str) -> None:
    """Refuse verdicts on another recording; for a part of a stream only the number of samples is compared."""
    stream = recording[name]
    count, sha256 = table.streams.get(stream.name, (len(stream), stream.sha256))
    if len(stream) > count or (len(stream) == count and stream.sha256 != sha256):
        raise UsageError(
            f"the verdicts on {stream.name} are of another recording, or of one that was changed since",
            why=f"they are on {count} samples with the hash {sha256[:12]}, "
            f"the stream has {len(stream)} with {stream.sha256[:12]}",
            hint=f"transect check {recording.typed} -o verdicts  judges the recording that is run",
        )


class _RecordedStream:
    """Combined verdicts and masks of a table on one stream."""

    def __init__(self, stream: Stream, windows: Mapping[int, Sequence[GroupedVerdict]]) -> None:
        verdicts = [windows[t0] for t0 in sorted(windows)]
        self._edges: Ints = np.array([*sorted(windows), verdicts[-1][0][0].t1_ns], np.int64)
        self._refuse_other_times(stream)
        grid = Grid(self._edges, int(np.diff(self._edges).max()))
        self._bounds = WindowedStream[object](stream, grid).bounds
        masked: dict[str, int] = {}
        self._known = [known_of(each, masked) for each in verdicts]
        self._masks = [mask_of_window(each) for each in verdicts]

    def _refuse_other_times(self, stream: Stream) -> None:
        """Refuse verdicts if the stream does not start within their windows."""
        first, last = int(self._edges[0]), int(self._edges[-1])
        if len(stream) and not (first <= int(stream.t_ns[0]) < last):
            raise UsageError(
                f"the verdicts on {stream.name} are of another time",
                why=f"they begin at {first} ns, the stream at {int(stream.t_ns[0])} ns",
                hint="check the recording that is run, with the same --offset",
            )

    def known_at(self, t_ns: int) -> StreamVerdicts | None:
        index = int(np.searchsorted(self._edges, t_ns, "right")) - 1
        return self._known[index] if 0 <= index < len(self._known) else None

    def mask_of(self, row: int) -> Mask | None:
        index = bisect_right(self._bounds, row) - 1
        mask, start = self._masks[index], self._bounds[index]
        count = self._bounds[index + 1] - start
        if mask is None or len(mask) < count:
            return None
        # If the stream starts within a window, it contains the last samples of that window.
        skipped = len(mask) - count if start == 0 else 0
        return mask[skipped + row - start]


def _write(table: VerdictTable, folder: Path) -> None:
    for suffix in (".parquet", ".csv"):
        table.write(folder / f"{VERDICTS}{suffix}")
