"""Sections on frames, source files, runs, products and citation."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from transect import __version__
from transect.base.tables import size_text
from transect.products.product import HEADINGS, row_of
from transect.recording.citation import citation_text

from .facts import FrameRow, RecordingFacts, Report, RunFacts
from .markup import Child, Markup, join, tag
from .sections import draw_table, fold, pairs

NOT_CITED = (
    "Nobody has said yet how these data are to be cited. --citation FILE takes title, authors, year and "
    "publisher, and what else is known, from a YAML file."
)
MOST_FILES, MOST_PRODUCTS = 40, 60
DEEPEST = 8
"""Steps to the right in the tree of frames."""


def write_frames(report: Report) -> Markup:
    """Return which frame hangs on which."""
    parts: list[Child] = []
    for recording in report.recordings:
        if recording.frames:
            parts.append(tag("h3", recording.name) if len(report.recordings) > 1 else None)
            parts.append(tag("ul", [_frame(row) for row in recording.frames], class_="tree"))
    return join(*parts)


def _frame(row: FrameRow) -> Markup:
    moves = tag("span", "moves", class_="moves") if row.moving else None
    about = "; ".join(filter(None, (row.place, row.source)))
    hangs = "\u2514 " if row.depth else ""
    return tag(
        "li", hangs, tag("b", row.name), moves, tag("small", about), class_=f"d{min(row.depth, DEEPEST)}"
    )


# What it was made from


def write_origins(report: Report) -> Markup:
    """Return files with their hashes, runs with their digests, wiring and parameters, and products."""
    parts: list[Child] = [_write_recording(recording) for recording in report.recordings]
    parts += [_write_run(run) for run in report.runs]
    if report.store:
        shown = report.products[:MOST_PRODUCTS]
        more = len(report.products) - len(shown)
        caption = f"{len(report.products)} products{f', of which {len(shown)} are listed' if more else ''}"
        parts.append(tag("h3", f"Products in {report.store}"))
        rows = [row_of(product) for product in shown]
        parts.append(
            draw_table(HEADINGS, rows, (0, 1, 2, 3, 4, 5, 8), caption) if rows else tag("p", "It has none.")
        )
    return join(*parts)


def _write_recording(recording: RecordingFacts) -> Markup:
    total = sum(file.size for file in recording.files)
    rows = [
        (file.path, size_text(file.size), tag("span", file.sha256, class_="hash"))
        for file in recording.files[:MOST_FILES]
    ]
    more = len(recording.files) - len(rows)
    facts = {
        "recording": recording.path,
        "format": recording.format,
        "robot": recording.robot,
        "its numbers are from": recording.reference,
        "options": ", ".join(f"{key}={value}" for key, value in recording.options.items()),
        "files that were read": f"{len(recording.files)}, {size_text(total)}" if recording.files else "",
        "sha256 over them": digest_of_files(recording) if recording.files else "",
    }
    listed = f"files and their hashes{f' (the first {MOST_FILES} of {len(recording.files)})' if more else ''}"
    return join(
        tag("h3", f"The recording {recording.name}"),
        pairs(facts),
        fold(listed, draw_table(("file", "size", "sha256"), rows, (0, 2))) if rows else None,
    )


def digest_of_files(recording: RecordingFacts) -> str:
    """Return one hash for all files: the sha256 over the sorted lines that sha256sum prints of them."""
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
        "used truth": "yes: it cannot be judged by it" if config.get("used_truth") else "",
        "versions": ", ".join(f"{name} {version}" for name, version in config.get("versions", {}).items()),
    }
    return join(
        tag("h3", f"The run {run.label}"),
        pairs(facts),
        draw_table(("input", "stream", "type", "how"), wiring, range(4), "What fed it") if wiring else None,
        draw_table(("output", "type", "samples", "files"), made, (0, 1, 3), "What it gave") if made else None,
        fold(
            f"its {len(parameters)} parameters",
            draw_table(("node", "parameter", "value"), parameters, range(3)),
        )
        if parameters
        else None,
    )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# How to cite it


def write_citation(report: Report) -> Markup:
    """Return texts to copy: of the data, of the machine, of what read them; and what makes the page again."""
    cited = citation_text(report.citation) if report.citation is not None else ""
    parts: list[Child] = [tag("h3", "The data")]
    parts.append(tag("pre", cited) if cited else tag("p", NOT_CITED))
    for recording in report.recordings:
        if recording.files:
            name = f"{recording.name}, sha256 {digest_of_files(recording)} over {_count_files(recording)}"
            parts += [tag("p", "They are identified by their content:"), tag("pre", name)]
        if recording.reference:
            parts += [tag("h3", f"The {recording.robot}"), tag("pre", recording.reference)]
    for run in report.runs:
        made = f"{run.run.name}, digest {run.run.digest}, transect {run.run.config['versions']['transect']}"
        parts += [tag("h3", f"The run {run.label}"), tag("pre", made)]
    parts += [tag("h3", "This page"), tag("pre", f"{report.command}\n# transect {__version__}")]
    return join(*parts)


def _count_files(recording: RecordingFacts) -> str:
    return f"{len(recording.files)} file{'s' * (len(recording.files) != 1)}"
