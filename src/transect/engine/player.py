"""The player and its sources: samples of several streams in waves of equal time, late ones counted.

Order of arrival is log time, else file order. A sample is late when it is older than the newest stamp seen
minus the reorder horizon; all others come in the order of (time, stream name, sequence).

The player gives them to a flow: at a pace or as fast as it can, to the end or step by step.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from threading import Lock
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Ints, Mask
from transect.errors import TimeError, UsageError
from transect.formats.shared.payloads import PAYLOAD_ERRORS
from transect.recording import Loss, Sample, Stream
from transect.recording.file_hashes import ReadLog, recording_reads
from transect.recording.stream import values_between
from transect.types import Image

from .arrival import play_by_log_times
from .flow import NEVER_NS, Flow
from .inboxes import NS
from .offsets import offset_hint
from .trust import apply_mask

Clock = Literal["sample", "log"]
CHUNK_SAMPLES = 4096  # per stream, sorted at a time: memory does not grow with the recording
Waves = Iterator[tuple[int, int, Any]]
LOST = object()  # replaces a sample that is dropped: its payload is unreadable, or it is masked
T = TypeVar("T")
PREFETCHED_IMAGES = 2  # decoded ahead
IMAGE_CACHE_BYTES = 128_000_000  # of decoded images that are kept for the next pass over a recording
_LOADING = Lock()  # the readers of one file are not created by two threads at once
SEVERAL_CHANNELS = -1  # channel of a wave with several samples, whose value is a list of (channel, value)


@dataclass
class PlayedStream:
    """One stream as it is played."""

    stream: Stream
    times: Ints  # (n,) int64, of the samples that are not late, in ascending order
    rows: Ints | None  # (n,) int64, their rows in the stream; None for 0, 1, 2, ...
    late: int  # number of late samples, which are dropped
    channels: tuple[int, ...] = ()
    strict: bool = False  # whether an unreadable payload ends the run; else it is dropped
    lost: dict[int, Loss] = field(default_factory=dict[int, Loss])  # unreadable payloads by row
    mask_of: Callable[[int], Mask | None] | None = None  # returns the mask of the sample in a row
    # Masked ratio of samples by row
    masked: dict[int, float] = field(default_factory=dict[int, float])
    cache_bytes: int = 0  # left for images that are kept for the next pass; 0 releases them
    reads: ReadLog | None = None  # of the files from which payloads are loaded
    _kept: dict[int, Image] = field(default_factory=dict[int, Image])

    def values(self, start: int, stop: int) -> Iterator[Any]:
        """Yield the values of the samples [start, stop) of `times`; `LOST` for dropped ones."""
        rows = range(start, stop) if self.rows is None else self.rows[start:stop].tolist()
        if self.stream.loader is not None:
            values = self._load(rows)
        elif self.rows is None:
            values = values_between(self.stream, start, stop)
        else:
            values = (next(values_between(self.stream, row, row + 1)) for row in rows)
        return values if self.mask_of is None else self._apply_masks(rows, values, self.mask_of)

    def _apply_masks(
        self, rows: Iterable[int], values: Iterator[Any], mask_of: Callable[[int], Mask | None]
    ) -> Iterator[Any]:
        """Yield values without their masked parts."""
        for row, value in zip(rows, values, strict=True):
            mask = None if value is LOST else mask_of(row)
            if mask is None or not mask.any():
                yield value
                continue
            left, self.masked[row] = apply_mask(value, mask)
            yield LOST if left is None else left

    @property
    def dropped(self) -> int:
        """Number of dropped samples: unreadable, or masked."""
        return len(self.lost) + sum(ratio == 1.0 for ratio in self.masked.values())

    def _load(self, rows: Iterable[int]) -> Iterator[Any]:
        for row, get in self._ready(rows):
            try:
                yield get()
            except PAYLOAD_ERRORS as error:
                if self.strict:
                    raise
                reason = f"{error.what} ({error.why})" if error.why else error.what
                self.lost[row] = Loss(error.where or self.stream.name, reason)
                yield LOST

    def _ready(self, rows: Iterable[int]) -> Iterator[tuple[int, Callable[[], Any]]]:
        """Yield rows and functions that load their values; images are decoded ahead on another thread."""
        if not issubclass(self.stream.type, Image):
            yield from ((row, partial(self._value, row)) for row in rows)
            return
        reader = ThreadPoolExecutor(1)
        try:
            pending = deque[tuple[int, Future[Any]]]()
            for row in rows:
                pending.append((row, reader.submit(self._value, row)))
                if len(pending) > PREFETCHED_IMAGES:
                    first, value = pending.popleft()
                    yield first, value.result
            for first, value in pending:
                yield first, value.result
        finally:
            # This may run on the reader's own thread (garbage collection), which cannot wait for itself.
            reader.shutdown(wait=False, cancel_futures=True)

    def _value(self, row: int) -> Any:
        if row in self._kept:
            return self._kept[row] if self.cache_bytes else self._kept.pop(row)
        with _LOADING, recording_reads(self.reads):
            value = Sample(self.stream, row).value
        if isinstance(value, Image):
            value.data.setflags(write=False)  # all nodes, the next pass and the digest share it
            if value.data.nbytes < self.cache_bytes:
                self.cache_bytes -= value.data.nbytes
                self._kept[row] = value
        return value


def cache_images(lines: Sequence[PlayedStream], cache_bytes: int) -> None:
    """Let image streams keep decoded images for the next pass; 0 bytes ends that."""
    images = [line for line in lines if issubclass(line.stream.type, Image)]
    for line in images:
        line.cache_bytes = cache_bytes // len(images)


def lines_of(streams: Sequence[Stream], clock: Clock = "sample", reorder_ns: int = 0) -> list[PlayedStream]:
    """Return streams ready to be played, in the order of their names.

    Parameters
    ----------
    streams : sequence of Stream
        On one clock.
    clock : {"sample", "log"}
        By which times they are played, and stamped; `log` needs every stream to have log times.
    reorder_ns : int
        The reorder horizon.
    """
    streams = sorted(streams, key=lambda s: s.name)
    if clock == "log":
        streams = [_stamp_by_log(stream) for stream in streams]
    timeless = [s for s in streams if s.meta.get("timeless")]
    if timeless and len(timeless) < len(streams):
        return _with_timeless(
            timeless, lines_of([s for s in streams if s not in timeless], "sample", reorder_ns)
        )
    clocks = {s.clock for s in streams}
    if len(clocks) > 1:
        named = {c: [s.name for s in streams if s.clock == c] for c in sorted(clocks)}
        raise TimeError(
            "streams on different clocks cannot be merged",
            why="; ".join(f"{clock}: {', '.join(names)}" for clock, names in named.items()),
            hint=offset_hint(named),
        )
    late = _late_by_log(streams, reorder_ns)
    return [_line(s, reorder_ns, late[k] if late else None) for k, s in enumerate(streams)]


def _stamp_by_log(stream: Stream) -> Stream:
    if stream.meta.get("timeless"):
        return stream
    if stream.log_ns is None:
        raise TimeError(f"{stream.name} has no log times", hint="play by --clock sample")
    return play_by_log_times(stream)


def _with_timeless(timeless: Sequence[Stream], timed: Sequence[PlayedStream]) -> list[PlayedStream]:
    """Return also what has no time, such as a map: it is there from the first sample on."""
    first = min((int(line.times[0]) for line in timed if len(line.times)), default=0)
    lines = [PlayedStream(s, np.full(len(s), first, np.int64), None, 0) for s in timeless]
    return sorted([*timed, *lines], key=lambda line: line.stream.name)


def _line(stream: Stream, reorder_ns: int, late: NDArray[np.bool_] | None) -> PlayedStream:
    times = stream.t_ns
    sorted_already = len(times) < 2 or bool((times[1:] >= times[:-1]).all())
    if late is None and not sorted_already:
        late = times < np.maximum.accumulate(times) - reorder_ns
    if late is not None and not late.any():
        late = None
    if late is None and sorted_already:
        return PlayedStream(stream, times, None, 0)
    in_time = np.flatnonzero(~late) if late is not None else np.arange(len(times))
    rows = in_time[np.argsort(times[in_time], kind="stable")]
    return PlayedStream(stream, times[rows], rows, len(times) - len(rows))


def _late_by_log(streams: Sequence[Stream], reorder_ns: int) -> list[NDArray[np.bool_]] | None:
    """Return which samples came after a newer one by more than the horizon; None if no log times tell."""
    if not streams or any(s.log_ns is None for s in streams):
        return None
    delays = [s.log_ns - s.t_ns for s in streams if s.log_ns is not None and len(s)]
    if not delays or max(int(d.max()) for d in delays) - min(int(d.min()) for d in delays) < reorder_ns:
        return [np.zeros(len(s), np.bool_) for s in streams]
    logged = np.concatenate([s.log_ns for s in streams if s.log_ns is not None])
    times = np.concatenate([s.t_ns for s in streams])
    arrival = np.argsort(logged, kind="stable")
    late = np.zeros(len(times), np.bool_)
    late[arrival] = times[arrival] < np.maximum.accumulate(times[arrival]) - reorder_ns
    return np.split(late, np.cumsum([len(s) for s in streams])[:-1])


def waves(lines: Sequence[PlayedStream], after_ns: int | None = None, chunk: int = CHUNK_SAMPLES) -> Waves:
    """Yield (time, channel, value) in ascending time; ties by stream name, then sequence.

    Samples of equal time come together: (time, `SEVERAL_CHANNELS`, [(channel, value), ...]).

    Parameters
    ----------
    lines : sequence of Line
        In the order of their names.
    after_ns : int, optional
        Begin with the first sample later than that.
    chunk : int
        Samples per stream that are ordered at a time; changes nothing in what is yielded.
    """
    return chain.from_iterable(_chunks(lines, after_ns, chunk))


def _chunks(lines: Sequence[PlayedStream], after_ns: int | None, chunk: int) -> Iterator[Waves]:
    """Yield the waves in stretches that every stream's next `chunk` samples reach over."""
    begun = -1 << 63 if after_ns is None else after_ns
    at = [int(np.searchsorted(line.times, begun, "right")) for line in lines]
    while any(k < len(line.times) for k, line in zip(at, lines, strict=True)):
        next_times = [line.times[k : k + chunk] for k, line in zip(at, lines, strict=True)]
        until = min(int(times[-1]) for times in next_times if len(times))
        stops = [int(np.searchsorted(line.times, until, "right")) for line in lines]
        yield _chunk(lines, at, stops)
        at = stops


def _chunk(lines: Sequence[PlayedStream], starts: Sequence[int], stops: Sequence[int]) -> Waves:
    """Return the waves of a stretch of every stream, in one stable sort.

    The iterators are those of `itertools`: at a microsecond per sample a Python frame more would be felt.
    """
    stretches = [*zip(lines, starts, stops, strict=True)]
    times = [line.times[start:stop] for line, start, stop in stretches]
    values = [line.values(start, stop) for line, start, stop in stretches]
    together = np.concatenate(times)
    line_of = np.repeat(np.arange(len(lines)), [len(t) for t in times])
    order = np.argsort(together, kind="stable")
    together = together[order]
    turns = line_of[order].tolist()
    fetched = map(next, map(values.__getitem__, turns))
    select = _readable if any(line.stream.loader is not None or line.mask_of for line in lines) else iter
    channels = [line.channels for line in lines]
    if all(len(c) == 1 for c in channels) and not bool((together[1:] == together[:-1]).any()):
        only = np.array([c[0] for c in channels])[line_of[order]]
        return select(zip(together.tolist(), only.tolist(), fetched, strict=True))
    return _group(select(zip(together.tolist(), map(channels.__getitem__, turns), fetched, strict=True)))


def _readable(samples: Iterable[tuple[int, T, Any]]) -> Iterator[tuple[int, T, Any]]:
    return (sample for sample in samples if sample[2] is not LOST)


def _group(samples: Iterator[tuple[int, tuple[int, ...], Any]]) -> Waves:
    """Put samples of equal time together."""
    for t_ns, same in groupby(samples, key=itemgetter(0)):
        wave = [(channel, value) for _, channels, value in same for channel in channels]
        yield (t_ns, *wave[0]) if len(wave) == 1 else (t_ns, SEVERAL_CHANNELS, wave)


END, PAUSED = "end", "paused"
Attention = Callable[[int], int]
"""Called when the recording has come to a time (ns); returns when it wants to be called again."""
State = Literal["ready", "paused", "ended"]
MAX_SLEEP_S = 0.1  # latency of a pause that is requested during a gap of the recording


class PlaybackPace:
    """Delays waves until their time: a start on both clocks, and a rate between them.

    The anchor is set once, not with every sample, so that delays by slow nodes are made up for.
    """

    def __init__(self, rate: float) -> None:
        if not rate > 0:
            raise UsageError(
                f"the rate {rate:g} is not more than 0", hint="1 is real time, 5 five times as fast"
            )
        self.rate = rate
        self._anchor: tuple[int, float] | None = None

    def wait_for(self, t_ns: int, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        """Sleep until a time of the recording, in short steps so that a pause interrupts a gap."""
        if self._anchor is None:
            self._anchor = (t_ns, time.monotonic())
            return
        first_ns, began = self._anchor
        due = began + (t_ns - first_ns) / NS / self.rate
        while (left := due - time.monotonic()) > 0 and not is_cancelled():
            time.sleep(min(left, MAX_SLEEP_S))

    def restart(self) -> None:
        """Reset the anchor to the next wave, after a pause."""
        self._anchor = None


class Player:
    """Plays waves into a flow.

    Parameters
    ----------
    flow : Flow
    waves : iterator
        As `sources.waves` yields them.
    rate : float, optional
        Times real time; as fast as possible by default.
    """

    def __init__(self, flow: Flow, waves: Waves, rate: float | None = None) -> None:
        self.flow, self._waves = flow, waves
        self._pace = PlaybackPace(rate) if rate is not None else None
        self._held: tuple[int, int, Any] | None = None
        self._stop = ""
        self._break_ns = NEVER_NS
        self._attentions: list[tuple[int, Attention]] = []
        self._attention_ns = NEVER_NS
        self.state: State = "ready"

    def set_rate(self, rate: float | None) -> None:
        """Play at another pace from the next `play` on: times real time, None for as fast as possible."""
        self._pace = PlaybackPace(rate) if rate is not None else None

    def attend(self, first_ns: int, attention: Attention) -> None:
        """Call a function when the recording has come to a time, before the waves from then on."""
        self._attentions.append((first_ns, attention))
        self._look_out()

    def pause(self) -> None:
        """Stop before the next wave; may be called from a node, a tap, or another thread."""
        self._stop = self._stop or PAUSED
        self._attention_ns = -NEVER_NS

    def break_at(self, t_ns: int) -> None:
        """Stop before the first wave at or after a time."""
        self._break_ns = t_ns
        self._look_out()

    def break_when(self, channel: str, condition: Callable[[Any], bool] = lambda value: True) -> None:
        """Stop after the wave in which a port emits a value for which the condition holds."""

        def tap(t_ns: int, value: Any) -> None:
            if condition(value):
                self._stop = self._stop or f"break: {channel}"
                self._attention_ns = -NEVER_NS

        self.flow.tap(channel, tap)

    def step(self, waves: int = 1) -> str:
        """Play some waves; return "paused", the break that came before they were all played, or "end"."""
        self._stop = ""
        for played in range(waves):
            item = self._next()
            if item is None:
                return self._hold_back() if self._stop else self._end()
            if item[0] >= self._attention_ns and self._attend(item[0]) and played:
                return self._hold_back(item)
            self._stop = ""
            self._play_one(*item)
        self._stop = self._stop or PAUSED
        return self._hold_back()

    def play(self) -> str:
        """Play until the end, a pause or a break; return which it was."""
        flow, push, pace = self.flow, self.flow.push, self._pace
        self._stop = ""
        if pace is not None:
            pace.restart()
        held = () if self._held is None else (self._held,)
        self._held = None
        for t_ns, channel, value in chain(held, self._waves):
            if t_ns >= self._attention_ns and self._attend(t_ns):
                return self._hold_back((t_ns, channel, value))
            if pace is not None:
                pace.wait_for(t_ns, self._is_stopping)
                if self._stop:
                    return self._hold_back((t_ns, channel, value))
            if channel == SEVERAL_CHANNELS:
                flow.wave(t_ns, value)
            else:
                push(t_ns, channel, value)
        return self._hold_back() if self._stop else self._end()

    def _play_one(self, t_ns: int, channel: int, value: Any) -> None:
        if channel == SEVERAL_CHANNELS:
            self.flow.wave(t_ns, value)
        else:
            self.flow.push(t_ns, channel, value)

    def _next(self) -> tuple[int, int, Any] | None:
        if self._held is None:
            return next(self._waves, None)
        item, self._held = self._held, None
        return item

    def _is_stopping(self) -> bool:
        return bool(self._stop)

    def _hold_back(self, item: tuple[int, int, Any] | None = None) -> str:
        """Hold a wave back until it goes on, and return why."""
        self._held, self.state = item, "paused"
        return self._stop

    def _end(self) -> str:
        if self.state != "ended":
            self.state = "ended"
            self.flow.end()
        return END

    def _look_out(self) -> None:
        self._attention_ns = min([NEVER_NS, self._break_ns, *(first for first, _ in self._attentions)])

    def _attend(self, t_ns: int) -> bool:
        """Do what is due at a time; return whether to stop before its wave."""
        self._attentions = [(f(t_ns) if due <= t_ns else due, f) for due, f in self._attentions]
        if self._break_ns <= t_ns:
            self._break_ns = NEVER_NS
            self._stop = self._stop or "break: time"
        self._look_out()
        return bool(self._stop)
