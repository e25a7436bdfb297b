"""The file that a person completes: commented YAML, filled in with what the recording knows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from transect.recording import Recording, Stream

from ..identifiers import identifier_part
from ..labels.areas import utc_text
from .config import STAND_IN_WORD
from .descriptions import summary_of
from .streams import default_level

EARTH = "urn:nasa:pds:context:target:planet.earth"
SIMULATED_WORLD = "SimulatedWorld"
NO_TIME = "1970-01-01T00:00:00Z"


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
    return "\n".join(_lines(recording, path, list(results), products)) + "\n"


def _lines(recording: Recording | None, path: str, results: list[str], products: str) -> Iterator[str]:
    name = (recording.name if recording else Path((results or [products])[0]).stem) or "unnamed"
    robot = recording.robot if recording else None
    created = default_created([recording] if recording else [])
    start = _day(recording, 0) or created[:10]
    yield "# What transect archive build makes a PDS4 bundle of. Lines that begin with # are remarks."
    yield "# Change what is wrong, complete what is empty; everything is checked, with line numbers."
    yield ""
    if recording is not None:
        yield f"recording: {_quote(path)}"
    else:
        yield "# recording: PATH"
    yield "# Folders of runs and of verdicts (transect run, transect check -o), trajectories, DEMs, clouds:"
    yield f"results: [{', '.join(map(_quote, results))}]"
    yield "# A store of products (transect products), such as mission.gpkg:"
    yield f"products: {_quote(products)}"
    yield ""
    yield "# Whether a program made the numbers, and no sensor; every label then says so:"
    yield f"simulated: {str(_is_simulated(recording)).lower()}"
    yield ""
    yield "# Whose identifiers they are. With the stand-in the bundle is marked not for submission. Ask your"
    yield "# node; the rules of the core accept urn:nasa:pds, urn:esa:psa, urn:jaxa:darts, urn:ros:rssa,"
    yield "# urn:isro:isda and urn:kari:kpds."
    yield f"authority: {STAND_IN_WORD}"
    yield ""
    yield "# When the archive is made, in UTC. Filled in with the end of the recording: no clock is asked, so"
    yield "# that building twice gives the same bytes."
    yield f"created: {_quote(created)}"
    yield ""
    yield "bundle:"
    yield f"  name: {_quote(identifier_part(name))}  # small letters, digits and . _ -"
    yield f"  title: {_quote(name)}"
    yield f"  description: {_quote(_about(recording))}"
    yield '  authors: ""  # Doe, Jo; Roe, Ann; A University'
    yield f"  year: {created[:4]}"
    yield '  doi: ""  # 10.17189/...'
    yield "  keywords: [robotics, field robotics]"
    yield ""
    yield "# What is registered is referred to by its lid; what has none gets a context product here."
    yield "investigation:"
    yield f"  name: {_quote(name)}"
    yield "  # Mission, Observing Campaign, Individual Investigation, Field Campaign or Other Investigation"
    yield "  type: Field Campaign"
    yield '  description: ""'
    yield f"  start: {_quote(start)}"
    yield f"  stop: {_quote(_day(recording, 1) or start)}"
    yield '  lid: ""'
    yield "host:"
    yield f"  name: {_quote(robot.name if robot and robot.name else 'robot')}"
    yield "  type: Rover  # Lander, Spacecraft, Aircraft, Balloon, Earth-based or Suborbital Rocket"
    yield f"  description: {_quote(f'{robot.title}. {robot.reference}' if robot else '')}"
    yield '  lid: ""'
    yield "target:"
    yield "  name: Earth"
    yield "  type: Planet"
    yield f"  lid: {EARTH}"
    yield ""
    if recording is not None:
        yield from _instruments(recording)
        yield from _streams(recording)
    yield "# Science, Engineering, Navigation, Calibration, Checkout, ..."
    yield "purpose: Science"
    yield "# Of a surface mission: {phase: SURFACE MISSION, start_sol: 209, stop_sol: 210}"
    yield "mission: {}"
    yield "# How many images of each camera are also kept as PNG, to look at:"
    yield "browse: 1"
    yield "# Papers (PDF/A), videos (MP4), pictures, texts:"
    yield "documents: []"
    yield "# - {file: paper.pdf, title: A paper, authors: 'Doe, Jo', date: 2024-01-01}"


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
