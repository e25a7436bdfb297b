"""The file that a person completes: commented YAML, filled in with what the recording knows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from string import Template

from transect.recording import Recording, Stream

from ..identifiers import identifier_part
from ..labels.areas import utc_text
from .config import STAND_IN_WORD
from .descriptions import summary_of
from .streams import default_level

SIMULATED_WORLD = "SimulatedWorld"
NO_TIME = "1970-01-01T00:00:00Z"
"""Stands for a date that nothing tells."""
UNDATED = (
    "no clock of the recording tells a date: `created`, `start`, `stop` and `year` of 1970 stand for one "
    "that is not known; write the dates into the YAML file"
)


def default_created(recordings: Iterable[Recording]) -> str:
    """Return when an archive is made if nobody says so: when the recording ended. No clock is asked."""
    spans = [each.spans().get("utc") for each in recordings]
    ends = [span[1] for span in spans if span is not None]
    return f"{utc_text(max(ends))[:19]}Z" if ends else NO_TIME


def template_text(
    recording: Recording | None, path: str = "", results: Iterable[str] = (), products: str = ""
) -> str:
    """Return a file that describes the archive of a recording, of results, or of both.

    Parameters
    ----------
    path : str
        Of the recording, as the file is to name it.
    results : iterable of str
        Folders of runs, folders of verdicts, files.
    products : str
        Address of a store of products.
    """
    text = files("transect.archive.making").joinpath("template.yaml").read_text(encoding="utf-8")
    return Template(text).substitute(_fill(recording, path, list(results), products))


def _fill(recording: Recording | None, path: str, results: list[str], products: str) -> dict[str, str]:
    """Return what stands for each word of `template.yaml`."""
    name = (recording.name if recording is not None else Path((results or [products])[0]).stem) or "unnamed"
    robot = recording.robot if recording is not None else None
    created = default_created([] if recording is None else [recording])
    start = _day(recording, 0) or created[:10]
    texts = {
        "products": products,
        "created": created,
        "identifier": identifier_part(name),
        "name": name,
        "about": _about(recording),
        "start": start,
        "stop": _day(recording, 1) or start,
        "robot": robot.name if robot and robot.name else "robot",
        "about_robot": f"{robot.title}. {robot.reference}" if robot else "",
    }
    return {word: _quote(text) for word, text in texts.items()} | {
        "recording": "# recording: PATH" if recording is None else f"recording: {_quote(path)}",
        "results": ", ".join(map(_quote, results)),
        "simulated": str(_is_simulated(recording)).lower(),
        "authority": STAND_IN_WORD,
        "year": created[:4],
        "streams": "" if recording is None else _describe_streams(recording),
    }


def _describe_streams(recording: Recording) -> str:
    return "".join(f"{line}\n" for line in (*_instruments(recording), *_streams(recording)))


def _is_simulated(recording: Recording | None) -> bool:
    """Tell whether transect simulated a recording: the truth beside it is in a frame of its own."""
    return recording is not None and any(each.frame == SIMULATED_WORLD for each in recording.streams)


def _instruments(recording: Recording) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for stream in recording.streams:
        if stream.role != "truth":
            device = stream.name.strip("/").partition("/")[0] or stream.name
            groups.setdefault(device, []).append(stream.name)
    if not groups:
        return
    yield "# Which sensor gave which streams; patterns such as Gnss/* match several."
    yield "instruments:"
    for name, streams in groups.items():
        yield f"  - name: {_quote(name)}"
        yield f"    streams: [{', '.join(map(_quote, streams))}]"
        yield '    description: ""'
        yield '    lid: ""'
    yield ""


def _streams(recording: Recording) -> Iterator[str]:
    yield "# level: Raw, Partially Processed, Calibrated or Derived. skip: true leaves it out, every: 10"
    yield '# takes each tenth image or cloud; columns: {x: {description: ..., format: "%9.4f"}} says more.'
    yield "streams:"
    for stream in recording.streams:
        yield f"  {_quote(stream.name)}:  # {stream.type.__name__}, {len(stream)} samples"
        yield f"    level: {default_level(stream)}"
        yield f"    title: {_quote(_title(stream))}"
    yield ""


def _title(stream: Stream) -> str:
    return f"{stream.name}: {summary_of(stream.type)}"


def _about(recording: Recording | None) -> str:
    if recording is None:
        return ""
    robot = recording.robot.title or recording.robot.name if recording.robot else "a robot"
    return f"{len(recording.streams)} streams of {robot}, recorded as {recording.format}"


def _day(recording: Recording | None, end: int) -> str:
    span = recording.spans().get("utc") if recording is not None else None
    return utc_text(span[end])[:10] if span else ""


def _quote(text: str) -> str:
    """Return a text as YAML, which takes what JSON writes."""
    return json.dumps(text, ensure_ascii=False)
