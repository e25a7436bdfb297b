"""Sections on frames, source files, runs, products and citation."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from transect import __version__
from transect.base.tables import size_text
from transect.products.product import HEADINGS, row_of
from transect.recording.citation import citation_text

from .facts import FrameRow, RecordingFacts, ReportFacts, RunFacts
from .markup import Child, Markup, join, tag
from .sections import draw_table, fold, pairs

NOT_CITED = (
    "No citation is given for these data. --citation FILE reads title, authors, year, publisher and further "
    "fields from a YAML file."
)
MAX_FILES, MAX_PRODUCTS = 40, 60
MAX_INDENT = 8
"""Largest indentation of the tree of frames, for which the style sheet has rules."""


def write_frames(report: ReportFacts) -> Markup:
    """Return the tree of frames."""
    parts: list[Child] = []
    for recording in report.recordings:
        if recording.frames:
            parts.append(tag("h3", recording.name) if len(report.recordings) > 1 else None)
            parts.append(tag("ul", [_frame(row) for row in recording.frames], class_="tree"))
    return join(*parts)


def _frame(row: FrameRow) -> Markup:
    moves = tag("span", "moving", class_="moves") if row.moving else None
    about = "; ".join(filter(None, (row.position, row.source)))
    hangs = "\u2514 " if row.depth else ""
    return tag(
        "li", hangs, tag("b", row.name), moves, tag("small", about), class_=f"d{min(row.depth, MAX_INDENT)}"
    )


# Provenance


def write_provenance(report: ReportFacts) -> Markup:
    """Return files with their hashes, runs with their digests, wiring and parameters, and products."""
    parts: list[Child] = [_write_recording(recording) for recording in report.recordings]
    parts += [_write_run(run) for run in report.runs]
    if report.store:
        shown = report.products[:MAX_PRODUCTS]
        more = len(report.products) - len(shown)
        caption = f"{len(report.products)} products{f' ({len(shown)} listed)' if more else ''}"
        parts.append(tag("h3", f"Products in {report.store}"))
        rows = [row_of(product) for product in shown]
        parts.append(
            draw_table(HEADINGS, rows, (0, 1, 2, 3, 4, 5, 8), caption)
            if rows
            else tag("p", "The store is empty.")
        )
    return join(*parts)


def _write_recording(recording: RecordingFacts) -> Markup:
    total = sum(file.size for file in recording.files)
    rows = [
        (file.path, size_text(file.size), tag("span", file.sha256, class_="hash"))
        for file in recording.files[:MAX_FILES]
    ]
    more = len(recording.files) - len(rows)
    facts = {
        "recording": recording.path,
        "format": recording.format,
        "robot": recording.robot,
        "reference of the robot": recording.reference,
        "options": ", ".join(f"{key}={value}" for key, value in recording.options.items()),
        "files": f"{len(recording.files)}, {size_text(total)}" if recording.files else "",
        "sha256 of all files": digest_of_files(recording) if recording.files else "",
    }
    listed = f"files and hashes{f' (the first {MAX_FILES} of {len(recording.files)})' if more else ''}"
    return join(
        tag("h3", f"Recording {recording.name}"),
        pairs(facts),
        fold(listed, draw_table(("file", "size", "sha256"), rows, (0, 2))) if rows else None,
    )


def digest_of_files(recording: RecordingFacts) -> str:
    """Return one hash of all files: the sha256 of the sorted lines that sha256sum prints."""
    lines = sorted(f"{file.sha256}  {file.path}\n" for file in recording.files)
    return sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _write_run(run: RunFacts) -> Markup:
    config, outputs = run.run.config, run.document.get("outputs", {})
    wiring = [
        (port, wire.get("stream"), wire.get("type"), wire.get("how"))
        for port, wire in config.get("wiring", {}).items()
    ]
    made = [(name, o["type"], o["samples"], ", ".join(o["files"])) for name, o in outputs.items()]
    parameters = [
        (node, name, _plain(value))
        for node, values in config.get("parameters", {}).items()
        for name, value in values.items()
    ]
    facts = {
        "compound": run.run.name,
        "status": run.run.status,
        "digest": run.run.digest,
        "folder": str(run.folder),
        "recording": run.gone,
        "ground truth": "used as an input, so the run cannot be evaluated against it"
        if config.get("used_truth")
        else "",
        "versions": ", ".join(f"{name} {version}" for name, version in config.get("versions", {}).items()),
    }
    return join(
        tag("h3", f"Run {run.label}"),
        pairs(facts),
        draw_table(("input", "stream", "type", "chosen by"), wiring, range(4), "Inputs") if wiring else None,
        draw_table(("output", "type", "samples", "files"), made, (0, 1, 3), "Outputs") if made else None,
        fold(
            f"{len(parameters)} parameters",
            draw_table(("node", "parameter", "value"), parameters, range(3)),
        )
        if parameters
        else None,
    )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# Citation


def write_citation(report: ReportFacts) -> Markup:
    """Return citations of the data, the robot and the runs, and the command that reproduces the page."""
    cited = citation_text(report.citation) if report.citation is not None else ""
    parts: list[Child] = [tag("h3", "Data")]
    parts.append(tag("pre", cited) if cited else tag("p", NOT_CITED))
    for recording in report.recordings:
        if recording.files:
            name = f"{recording.name}, sha256 {digest_of_files(recording)} of {_count_files(recording)}"
            parts += [tag("p", "The data are identified by their content:"), tag("pre", name)]
        if recording.reference:
            parts += [tag("h3", recording.robot), tag("pre", recording.reference)]
    for run in report.runs:
        made = f"{run.run.name}, digest {run.run.digest}, transect {run.run.config['versions']['transect']}"
        parts += [tag("h3", f"Run {run.label}"), tag("pre", made)]
    parts += [tag("h3", "This report"), tag("pre", f"{report.command}\n# transect {__version__}")]
    return join(*parts)


def _count_files(recording: RecordingFacts) -> str:
    return f"{len(recording.files)} file{'s' * (len(recording.files) != 1)}"
