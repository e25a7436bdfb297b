"""Fault injection into simulated and real recordings; every affected sample is labelled.

`inject` returns the recording with a fault and a table of labels, which the recording has as its stream
`truth/faults`, in addition to other truth. `written.write_injected` writes it to a new folder, in the
recording's own format, and also supports faults of files. Severity 0 is the unchanged recording; a higher
severity affects at least as many samples. The same seed gives the same fault.

- `air`, `obscurants`, `rain`: dust, smoke, fog, rain
- `timing`, `signals`: faults of any stream, of fixes, wheels and joints
- `calibration`: extrinsic calibration, and invalid or excessive covariances
- `descriptions`: errors in the description of a robot: units, axes, sides, mounts
- `beams`, `pictures`: occlusion, image faults, haze, damaged files
- `written`: recordings with faults, on disk, and whether a fault is in what was written
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from transect.base import clocks, plugins
from transect.base.clocks import TimeLike
from transect.errors import UsageError, did_you_mean
from transect.recording import FrameTree, Recording, Stream

from .model import LABELS, Change, Event, Fault, add_labels, is_kept, labels_of

__all__ = [
    "EVERYTHING",
    "FAULTS",
    "LABELS",
    "Change",
    "Event",
    "Fault",
    "event_of",
    "fault_named",
    "find_able",
    "inject",
    "labels_of",
    "target_of",
]

FAULTS: dict[str, Fault] = {
    fault.name: fault for group in plugins.strings("faults") for fault in plugins.load("faults", group)
}
EVERYTHING = ("*",)


def fault_named(name: str) -> Fault:
    """Return a fault; ``late-start`` is `late_start`."""
    fault = FAULTS.get(name.lower().replace("-", "_"))
    if fault is None:
        raise UsageError(f"there is no fault {name!r}", hint=did_you_mean(name, FAULTS))
    return fault


def inject(
    recording: Recording,
    fault: str,
    severity: float,
    seed: int = 0,
    *,
    streams: Sequence[str] = EVERYTHING,
    start: TimeLike | None = None,
    end: TimeLike | None = None,
    parameters: Mapping[str, float] | None = None,
) -> tuple[Recording, pa.Table]:
    """Inject a fault into a recording, and label the affected samples.

    Columns are changed at once, images when they are loaded; clouds are loaded now to find the affected ones,
    and changed when they are loaded again.

    Parameters
    ----------
    fault : str
        One of `FAULTS`.
    severity : float
        From 0, no effect, to 1; see the description of each fault.
    streams : sequence of str
        Shell patterns; the fault affects matching streams of its types. Streams of role truth are affected
        only if a pattern is not `*`, and those of a folder `truth/` never.
    start, end : TimeLike, optional
        Time window, [start, end); each fault has its own default.
    parameters : mapping of str to float, optional
        Parameters of the fault that differ from its defaults.

    Returns
    -------
    Recording
    Table
        `t_ns`, `stream`, `index`, `fault`, `severity`, `fraction`, `reason` of each affected sample. Index
        and time are those in the given recording; `fraction` is the affected fraction of the sample, and
        `reason` the space-separated codes by which a check may report the fault.
    """
    chosen = fault_named(fault)
    if chosen.damage is not None:
        raise UsageError(
            f"{chosen.name} is a fault of files, not of streams",
            hint="use written.write_injected",
        )
    if chosen.remount is not None and not (start is None and end is None):
        raise UsageError(
            f"{chosen.name} lasts as long as the recording", why="a mount in the frame tree has no times"
        )
    event = event_of(recording, chosen, severity, seed, start, end, parameters)
    selected = _choose_streams(recording, chosen, streams)
    changes, frames = _apply_fault(chosen, selected if severity else [], event)
    labels = labels_of(recording, event, changes)
    if not changes:
        return recording, labels
    changed = tuple(changes[s.name].stream if s.name in changes else s for s in recording)
    return add_labels(recording.replace(streams=changed, frames=frames), event, labels), labels


def _apply_fault(
    fault: Fault, streams: Sequence[Stream], event: Event
) -> tuple[dict[str, Change], FrameTree]:
    """Return the changes of the affected streams by name, and the frames."""
    frames = event.recording.frames
    if fault.remount is not None:
        for stream in streams:
            frames = fault.remount(frames, stream, event)
        from .descriptions import find_moved

        return find_moved(event, frames), frames
    changes = {s.name: fault.apply(s, event) for s in streams if fault.apply is not None}
    return {name: change for name, change in changes.items() if change.touched.any()}, frames


def event_of(
    recording: Recording,
    fault: Fault,
    severity: float,
    seed: int,
    start: TimeLike | None = None,
    end: TimeLike | None = None,
    parameters: Mapping[str, float] | None = None,
) -> Event:
    """Return the event of a fault in a recording: windows, severity and parameters; see `inject`."""
    if not 0.0 <= severity <= 1.0:
        raise UsageError(f"the severity {severity:g} is not between 0 and 1", hint=f"1 is: {fault.severity}")
    for name in parameters or {}:
        if name not in fault.parameters:
            raise UsageError(
                f"{fault.name} has no parameter {name!r}", hint=did_you_mean(name, fault.parameters)
            )
    windows = _windows(recording, fault, start, end)
    known = {**fault.parameters, **(parameters or {})}
    return Event(recording, fault.name, severity, seed, windows, known, fault.reasons)


def _windows(
    recording: Recording, fault: Fault, start: TimeLike | None, end: TimeLike | None
) -> dict[str, tuple[int, int]]:
    """Return the time window of a fault on each clock of the recording's own streams."""
    own = recording.replace(streams=tuple(s for s in recording if not is_kept(s)))
    windows: dict[str, tuple[int, int]] = {}
    for clock, (first, last) in own.spans().items():
        low, high = (first + round(part * (last + 1 - first)) for part in fault.lasts)
        low = low if start is None else clocks.resolve(start, first, clock)
        high = high if end is None else clocks.resolve(end, first, clock)
        if high <= low:
            raise UsageError(
                f"{fault.name} would end before it starts",
                why=f"from {clocks.text_from_ns(low, clock)} to {clocks.text_from_ns(high, clock)} ({clock})",
            )
        windows[clock] = (low, high)
    return windows


def find_able(recording: Recording, fault: Fault, patterns: Sequence[str] = EVERYTHING) -> list[str]:
    """Return the names of the streams that a fault can affect; see `inject` for patterns.

    The result is `files` for a fault of files, which can affect every recording.
    """
    if fault.damage is not None:
        return ["files"]
    is_free = tuple(patterns) == EVERYTHING
    chosen = [s for s in recording if s.role != "truth"] if is_free else recording.select(*patterns)
    able = [s for s in chosen if issubclass(s.type, fault.types) and not is_kept(s)]
    return [s.name for s in able if fault.able(s, recording)]


def _choose_streams(recording: Recording, fault: Fault, patterns: Sequence[str]) -> list[Stream]:
    """Return the streams that a fault affects, and their counterparts."""
    patterns = tuple(patterns) or EVERYTHING
    named = [s.name for s in recording.select(*patterns)]
    able = find_able(recording, fault, patterns)
    if not able:
        raise UsageError(
            f"{fault.name} cannot affect {', '.join(named)}", why=f"it is for {target_of(fault)}"
        )
    found = (fault.counterpart(recording[name], recording) for name in able)
    counterparts = {stream.name for stream in found if stream is not None}
    return [s for s in recording if s.name in able or s.name in counterparts]


def target_of(fault: Fault) -> str:
    """Return the streams that a fault can affect, in words."""
    if fault.damage is not None:
        return "files"
    kinds = ", ".join(kind.__name__ for kind in fault.types if kind is not object)
    if not kinds:
        return fault.needs or "any stream"
    return f"{kinds} ({fault.needs})" if fault.needs else kinds
