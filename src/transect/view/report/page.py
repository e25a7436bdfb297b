"""The page as a single file, which needs neither other files nor a network."""

from __future__ import annotations

import base64
from hashlib import sha256
from importlib.resources import files
from typing import Any

from transect import __version__

from .accuracy import write_errors
from .facts import ReportFacts
from .maps import draw_tracks
from .markup import Child, Markup, PageAssets, clean, data_block, join, tag
from .provenance import write_citation, write_frames, write_provenance
from .sections import draw_snapshot, write_problems, write_signals, write_streams, write_trajectory
from .sentences import UNTRUSTED, summarise

CURSOR_HINT = "click to pin the cursor, arrow keys to move it, Esc to release it"


def write_page(report: ReportFacts) -> str:
    """Return a report as HTML; equal facts give equal text."""
    sheet = PageAssets()
    overview = _write_overview(sheet, report)
    parts = [part for part in _list_parts(sheet, report) if part[2]]
    body = join(
        _write_header(report),
        tag("nav", [tag("a", title, href=f"#{key}") for key, title, *_ in parts], aria_label="sections"),
        overview,
        [_write_part(*part) for part in parts],
        _write_footer(report),
        tag("div", tag("b"), tag("span", CURSOR_HINT, class_="hint"), id="bar", hidden=True),
        tag("div", id="tip", hidden=True, role="status"),
        data_block("data", _values(sheet, report)),
    )  # fmt: skip
    style = Markup(f"{_asset('style.css')}{''.join(sheet.rules)}")
    script = Markup(_asset("page.js"))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{report.title} \u00b7 transect report"),
        tag("style", style),
    )
    page = tag("html", head, tag("body", body, tag("script", script)), lang="en")
    return f"<!doctype html>\n{page}\n"


def _asset(name: str) -> str:
    return files("transect.view.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return the content security policy: only the page's own style, script and images."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _values(sheet: PageAssets, report: ReportFacts) -> dict[str, Any]:
    axis = next((r.axis for r in report.recordings if r.axis), None) or next(
        (run.axis for run in report.runs if run.axis), None
    )
    return {
        "drawings": sheet.values,
        "start_ms": axis.start_ns / 1e6 if axis is not None and axis.clock == "utc" else None,
        "end": axis.duration_s if axis is not None else 1.0,
    }


# Sections


def _write_header(report: ReportFacts) -> Markup:
    counts = [(len(report.recordings), "recording"), (len(report.runs), "run")]
    kind = " and ".join(f"{n} {what}{'s' * (n > 1)}" for n, what in counts if n)
    return tag("header", tag("p", f"Report on {kind}", class_="kind"), tag("h1", report.title))


def _write_overview(sheet: PageAssets, report: ReportFacts) -> Markup:
    """Return the overview: a summary, and the map, or snapshots of sensors without one."""
    sentences = [
        tag("p", sentence, class_="bad" if _is_bad(sentence) else None) for sentence in summarise(report)
    ]
    drawn = draw_tracks(sheet, report.map) if report.map is not None else _draw_snapshots(report)
    return tag(
        "section", tag("div", sentences, class_="story"), drawn, class_=f"first{'' if drawn else ' alone'}"
    )


def _draw_snapshots(report: ReportFacts) -> Markup | None:
    """Return the snapshots of recordings, for a report without positions."""
    found = [drawn for recording in report.recordings if (drawn := draw_snapshot(recording))]
    return tag("div", found) if found else None


def _is_bad(sentence: str) -> bool:
    return sentence.startswith(UNTRUSTED) or " was bad: " in sentence or " were bad: " in sentence


def _list_parts(sheet: PageAssets, report: ReportFacts) -> list[tuple[str, str, Markup, bool]]:
    """Return key, title, content and initial state (open or not) of each section; content may be empty."""
    runs = write_errors(sheet, report) if report.runs else Markup("")
    return [
        ("streams", "Streams", write_streams(sheet, report), True),
        ("problems", "Problems", write_problems(report), True),
        ("trajectory", "Trajectory", write_trajectory(sheet, report), True),
        ("accuracy", "Accuracy", runs, True),
        ("signals", "Signals", write_signals(sheet, report), False),
        ("frames", "Frames", write_frames(report), False),
        ("provenance", "Provenance", write_provenance(report), True),
        ("citation", "Citation", write_citation(report), True),
    ]


def _write_part(key: str, title: str, content: Child, is_open: bool) -> Markup:
    summary = tag("summary", tag("h2", title))
    return tag("details", summary, content, class_="part", id=key, open=is_open)


def _write_footer(report: ReportFacts) -> Markup:
    return tag("footer", tag("p", f"transect {__version__}: ", tag("code", clean(report.command))))
