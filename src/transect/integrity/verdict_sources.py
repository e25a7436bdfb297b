"""Runs that act on verdicts: checks beside the nodes in one pass, or a table of verdicts in hindsight.

`engine.trust` says what a run does with them. Here is where they come from:

- `AsPlayed` lets the checks judge a window as soon as a sample of it is played. Of what they find there only
  the mask of that very sample is handed out; scores and states wait until the window has ended.
- `Hindsight` has the verdicts of a table. A sample gets that of its own window, as if it had been known.
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
from transect.engine.trust import Known, VerdictSource
from transect.errors import UsageError
from transect.recording import Recording, Stream
from transect.types import Verdict

from .config import Config, load_config, plain_config
from .rules import roll_up, unite
from .runner import Session, collect, sessions_of
from .table import VerdictTable
from .windows import Grid, Track

VERDICTS = "verdicts"
"""Name of the files in the folder of a run."""
EXPLAINED_NS = 10 * NS
"""For so long after samples were masked other checks may still speak of them: they look back."""
Judgement = tuple[Verdict, str]
"""A verdict, and the group of its check."""


def choose_source(
    check: bool | Config | str | Path = False, verdicts: VerdictTable | str | Path | None = None
) -> VerdictSource | None:
    """Return what makes the verdicts of a run; None if it is to trust everything."""
    if verdicts is not None:
        if check:
            raise UsageError("a run can check, or be given verdicts, not both", hint="leave one of them out")
        given = verdicts if isinstance(verdicts, VerdictTable) else VerdictTable.read(verdicts)
        origin = {} if isinstance(verdicts, VerdictTable) else {"sha256": _sha256(Path(verdicts))}
        return lambda recording, streams: Hindsight(given, recording, streams, origin)
    if check is False:
        return None
    config = load_config(check) if isinstance(check, str | Path) else check if check is not True else None
    return lambda recording, streams: AsPlayed(recording, streams, config)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def known_of(judgements: Sequence[Judgement], masked: dict[str, int]) -> Known:
    """Return what several checks say together of one window of a stream; there must be at least one.

    Parameters
    ----------
    masked : dict of str to int
        By reason: the end (ns) of the newest window in which a check gave a region for it. What any check
        finds for the same reason soon after is explained by samples that are masked: it does not weigh.
    """
    counted = [each for each in judgements if not each[0].muted]
    masked.update({v.reason: v.t1_ns for v, _ in counted if v.region is not None and v.reason})
    rest = [(v, g) for v, g in counted if v.region is None and not _is_explained(v, masked)]
    return Known(_together(counted, judgements[0][0]), _together(rest, judgements[0][0]))


def _is_explained(verdict: Verdict, masked: Mapping[str, int]) -> bool:
    return verdict.reason in masked and verdict.t0_ns - masked[verdict.reason] <= EXPLAINED_NS


def _together(judgements: Sequence[Judgement], any_one: Verdict) -> Verdict:
    """Return verdicts rolled up to one; of a window of which nothing is known it is UNKNOWN."""
    verdicts = [verdict for verdict, _ in judgements]
    scores = [verdict.score for verdict in verdicts]
    whole = roll_up(
        [group for _, group in judgements],
        scores,
        [v.state for v in verdicts],
        [v.raw for v in verdicts],
        [v.reason for v in verdicts],
    )
    nothing = Verdict(any_one.sensor, any_one.stream, any_one.t0_ns, any_one.t1_ns)
    at = nothing if whole.at is None else verdicts[whole.at]
    region = unite([v.region for v in verdicts if v.region is not None])
    return replace(at, state=whole.state, raw=whole.raw, score=whole.score, region=region)


def mask_of_window(judgements: Sequence[Judgement]) -> Mask | None:
    """Return which parts (n, k) of a window's n samples any check masks; None if nothing is masked."""
    regions = [v.region for v, _ in judgements if v.region is not None and not v.muted]
    return unite([region for region in regions if region.ndim == 2 and region.any()])


class AsPlayed:
    """Verdicts of checks that run beside the nodes, a window ahead of what is played.

    Parameters
    ----------
    recording : Recording
        What is played.
    streams : collection of str
        To judge; the others are what these are compared with.
    config : Config, optional
    """

    def __init__(self, recording: Recording, streams: Collection[str], config: Config | None = None) -> None:
        self._sessions, self._config = sessions_of(recording, config, judged=set(streams)), config
        self._of = {job.track.stream.name: _Judged(s, job.track) for s in self._sessions for job in s.jobs}
        self._lock = RLock()

    def known_at(self, stream: str, t_ns: int) -> Known | None:
        """Return what the checks say of the newest window that had ended at a time."""
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
        """Return what of a sample is to be dropped, by the checks of its own window."""
        judged = self._of.get(stream)
        if judged is None:
            return None
        index = bisect_right(judged.track.bounds, row) - 1
        self._judge_until(judged, index)
        mask = judged.masks[index]
        return None if mask is None else mask[row - judged.track.bounds[index]]

    def _judge_until(self, judged: _Judged, index: int) -> None:
        """Judge the windows of a stream's session up to one, in order; threads of a run ask as they come."""
        if index < len(judged.known):
            return
        session = judged.session
        with self._lock:
            while len(judged.known) <= index:
                verdicts = zip(session.judge(len(judged.known)), session.jobs, strict=True)
                found: dict[str, list[Judgement]] = {}
                for verdict, job in verdicts:
                    found.setdefault(verdict.stream, []).append((verdict, job.check.group))
                for name, judgements in found.items():
                    self._of[name].add(judgements)

    def describe(self) -> dict[str, Any]:
        """Return that these are no hindsight, which checks there were, and how they were configured."""
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


class _Judged:
    """What is known of one stream so far, window by window."""

    def __init__(self, session: Session, track: Track[object]) -> None:
        self.session, self.track = session, track
        self.known: list[Known] = []
        self.masks: list[Mask | None] = []
        self._masked: dict[str, int] = {}

    def add(self, judgements: Sequence[Judgement]) -> None:
        """Take the verdicts on the next window."""
        self.masks.append(mask_of_window(judgements))
        self.known.append(known_of(judgements, self._masked))


class Hindsight:
    """Verdicts of a table, each of which holds for the samples of its own window.

    Parameters
    ----------
    table : VerdictTable
    recording : Recording
        What is played; it may be a part of what was checked.
    streams : collection of str
        That are used.
    origin : mapping
        Where the table comes from, for the run's configuration.
    """

    def __init__(
        self,
        table: VerdictTable,
        recording: Recording,
        streams: Collection[str],
        origin: Mapping[str, str] | None = None,
    ) -> None:
        self.table, self._origin = table, dict(origin or {})
        windows: dict[str, dict[int, list[Judgement]]] = {name: {} for name in streams}
        for verdict, group in zip(table, table.column("group"), strict=True):
            if verdict.stream in windows:
                windows[verdict.stream].setdefault(verdict.t0_ns, []).append((verdict, group))
        self._of = {name: _Remembered(recording[name], found) for name, found in windows.items() if found}
        if not self._of:
            raise UsageError(
                "the verdicts are on none of the streams that are used",
                why=f"used are {', '.join(sorted(streams))}",
                hint=f"transect check {recording.typed} -o verdicts  writes them for this recording",
            )
        for name in self._of:
            _refuse_other_samples(table, recording, name)

    def known_at(self, stream: str, t_ns: int) -> Known | None:
        """Return what the checks say of the window in which a time is."""
        return self._of[stream].known_at(t_ns) if stream in self._of else None

    def mask_of(self, stream: str, row: int) -> Mask | None:
        """Return what of a sample is to be dropped."""
        return self._of[stream].mask_of(row) if stream in self._of else None

    def describe(self) -> dict[str, Any]:
        """Return that these are hindsight."""
        return {"hindsight": True, **self._origin}

    def write(self, folder: Path, until_ns: int) -> None:
        """Write the whole table."""
        _write(self.table, folder)


def _refuse_other_samples(table: VerdictTable, recording: Recording, name: str) -> None:
    """Refuse verdicts on a stream of another recording; of a part of a stream only the number is compared."""
    stream = recording[name]
    count, sha256 = table.streams.get(stream.name, (len(stream), stream.sha256))
    if len(stream) > count or (len(stream) == count and stream.sha256 != sha256):
        raise UsageError(
            f"the verdicts on {stream.name} are of another recording, or of one that was changed since",
            why=f"they are on {count} samples with the hash {sha256[:12]}, "
            f"the stream has {len(stream)} with {stream.sha256[:12]}",
            hint=f"transect check {recording.typed} -o verdicts  judges the recording that is run",
        )


class _Remembered:
    """What a table has on one stream."""

    def __init__(self, stream: Stream, windows: Mapping[int, Sequence[Judgement]]) -> None:
        judgements = [windows[t0] for t0 in sorted(windows)]
        self._edges: Ints = np.array([*sorted(windows), judgements[-1][0][0].t1_ns], np.int64)
        self._refuse_others(stream)
        self._bounds = Track[object](stream, Grid(self._edges, int(np.diff(self._edges).max()))).bounds
        masked: dict[str, int] = {}
        self._known = [known_of(each, masked) for each in judgements]
        self._masks = [mask_of_window(each) for each in judgements]

    def _refuse_others(self, stream: Stream) -> None:
        """Refuse verdicts on other samples than those of the stream."""
        first, last = int(self._edges[0]), int(self._edges[-1])
        if len(stream) and not (first <= int(stream.t_ns[0]) < last):
            raise UsageError(
                f"the verdicts on {stream.name} are of another time",
                why=f"they begin at {first} ns, the stream at {int(stream.t_ns[0])} ns",
                hint="check the recording that is run, with the same --offset",
            )

    def known_at(self, t_ns: int) -> Known | None:
        index = int(np.searchsorted(self._edges, t_ns, "right")) - 1
        return self._known[index] if 0 <= index < len(self._known) else None

    def mask_of(self, row: int) -> Mask | None:
        index = bisect_right(self._bounds, row) - 1
        mask, start = self._masks[index], self._bounds[index]
        count = self._bounds[index + 1] - start
        if mask is None or len(mask) < count:
            return None
        # Of a window that is cut at its start, the last samples are there.
        skipped = len(mask) - count if start == 0 else 0
        return mask[skipped + row - start]


def _write(table: VerdictTable, folder: Path) -> None:
    for suffix in (".parquet", ".csv"):
        table.write(folder / f"{VERDICTS}{suffix}")
