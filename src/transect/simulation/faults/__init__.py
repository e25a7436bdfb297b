"""Faults on purpose, for simulated and real recordings alike; every sample that is touched is labelled.

`inject` returns the recording with a fault and a table of labels; the recording has them as its stream
`truth/faults`, and whatever other truth it had. `written.write_injected` does that to a new folder, in the
recording's own format, and knows the faults of files, too. Severity 0 is the recording as it was; more
severity touches at least as much. Same seed, same fault.

- `air`, `obscurants`, `rain`: dust, smoke, fog, rain
- `timing`, `order`, `signals`, `spikes`: what can happen to any stream, to fixes, wheels and joints
- `covariances`: uncertainties that cannot be, or that hide every error
- `descriptions`: what people get wrong when they describe a robot: units, axes, sides, mounts
- `occlusion`, `extrinsic`, `pictures`: what happens to one kind of sensor; haze is in `pictures`
- `damage`: what happens to files
- `written`: recordings with faults, on disk
- `carried`: whether a fault is in what was written
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
    """Return a recording to which a fault happens, and which samples it touches.

    Columns are changed at once, images when they are loaded; clouds are looked at now to know which are
    touched, and changed when they are loaded.

    Parameters
    ----------
    fault : str
        One of `FAULTS`.
    severity : float
        From 0, nothing, to 1; each fault says what that is.
    streams : sequence of str
        Shell patterns; of the streams that match, those of the fault's types are touched. Streams of role
        truth are touched only if a pattern is not `*`, and those of a folder `truth/` never.
    start, end : TimeLike, optional
        When it happens, [start, end); each fault has its own default.
    parameters : mapping of str to float, optional
        Of the fault, in place of its defaults.

    Returns
    -------
    Recording
    Table
        `t_ns`, `stream`, `index`, `fault`, `severity`, `fraction`, `reason` of each touched sample. Index and
        time are those in the recording as it was given; `fraction` is how much of the sample was touched, and
        `reason` the codes, with spaces between, by which a check may name the fault.
    """
    chosen = fault_named(fault)
    if chosen.damage is not None:
        raise UsageError(
            f"{chosen.name} happens to files, not to streams",
            hint="written.write_injected does it",
        )
    if chosen.remount is not None and not (start is None and end is None):
        raise UsageError(
            f"{chosen.name} lasts as long as the recording", why="a mount in the frame tree has no times"
        )
    event = event_of(recording, chosen, severity, seed, start, end, parameters)
    meant = _choose_streams(recording, chosen, streams)
    changes, frames = _make_happen(chosen, meant if severity else [], event)
    labels = labels_of(recording, event, changes)
    if not changes:
        return recording, labels
    changed = tuple(changes[s.name].stream if s.name in changes else s for s in recording)
    return add_labels(recording.replace(streams=changed, frames=frames), event, labels), labels


def _make_happen(
    fault: Fault, streams: Sequence[Stream], event: Event
) -> tuple[dict[str, Change], FrameTree]:
    """Return what became of the streams that a fault touches, by name, and of the frames."""
    frames = event.recording.frames
    if fault.remount is not None:
        for stream in streams:
            frames = fault.remount(frames, stream, event)
        from .descriptions import find_moved

        return find_moved(event, frames), frames
    made = {s.name: fault.apply(s, event) for s in streams if fault.apply is not None}
    return {name: change for name, change in made.items() if change.touched.any()}, frames


def event_of(
    recording: Recording,
    fault: Fault,
    severity: float,
    seed: int,
    start: TimeLike | None = None,
    end: TimeLike | None = None,
    parameters: Mapping[str, float] | None = None,
) -> Event:
    """Return when and how a fault would happen to a recording; see `inject`."""
    if not 0.0 <= severity <= 1.0:
        raise UsageError(f"the severity {severity:g} is not between 0 and 1", hint=f"1 is: {fault.severity}")
    for name in parameters or {}:
        if name not in fault.parameters:
            raise UsageError(f"{fault.name} has no {name!r}", hint=did_you_mean(name, fault.parameters))
    windows = _windows(recording, fault, start, end)
    known = {**fault.parameters, **(parameters or {})}
    return Event(recording, fault.name, severity, seed, windows, known, fault.reasons)


def _windows(
    recording: Recording, fault: Fault, start: TimeLike | None, end: TimeLike | None
) -> dict[str, tuple[int, int]]:
    """Return when a fault lasts on each clock of the recording's own streams."""
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
    """Return the names of the streams that a fault can happen to; see `inject` for patterns.

    A fault of files can happen to every recording: `files` stands for them.
    """
    if fault.damage is not None:
        return ["files"]
    is_free = tuple(patterns) == EVERYTHING
    chosen = [s for s in recording if s.role != "truth"] if is_free else recording.select(*patterns)
    able = [s for s in chosen if issubclass(s.type, fault.types) and not is_kept(s)]
    return [s.name for s in able if fault.able(s, recording)]


def _choose_streams(recording: Recording, fault: Fault, patterns: Sequence[str]) -> list[Stream]:
    """Return the streams that a fault happens to, and their partners."""
    patterns = tuple(patterns) or EVERYTHING
    named = [s.name for s in recording.select(*patterns)]
    able = find_able(recording, fault, patterns)
    if not able:
        raise UsageError(
            f"{fault.name} cannot happen to {', '.join(named)}", why=f"it is for {target_of(fault)}"
        )
    partners = {p.name for name in able if (p := fault.partner(recording[name], recording)) is not None}
    return [s for s in recording if s.name in able or s.name in partners]


def target_of(fault: Fault) -> str:
    """Return the streams that a fault can happen to, in words."""
    if fault.damage is not None:
        return "files"
    kinds = ", ".join(kind.__name__ for kind in fault.types if kind is not object)
    if not kinds:
        return fault.needs or "any stream"
    return f"{kinds} ({fault.needs})" if fault.needs else kinds
