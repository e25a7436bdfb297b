"""One file that holds a whole page: no other file, no network, and no script but its own."""

from __future__ import annotations

import base64
from hashlib import sha256
from importlib.resources import files
from typing import Any

from transect import __version__

from .accuracy import write_errors
from .facts import Report
from .maps import draw_tracks
from .markup import Child, Markup, Sheet, clean, data_block, join, tag
from .provenance import write_citation, write_frames, write_origins
from .sections import draw_look, write_problems, write_signals, write_streams, write_ways
from .sentences import NOT_TRUSTED, summarise

CURSOR = "click pins the cursor, arrow keys move it, Esc lets it go"


def write_page(report: Report) -> str:
    """Return a report as HTML; the same facts give the same text."""
    sheet = Sheet()
    story = _write_first(sheet, report)
    parts = [part for part in _list_parts(sheet, report) if part[2]]
    body = join(
        _write_header(report),
        tag("nav", [tag("a", title, href=f"#{key}") for key, title, *_ in parts], aria_label="sections"),
        story,
        [_write_part(*part) for part in parts],
        _write_footer(report),
        tag("div", tag("b"), tag("span", CURSOR, class_="hint"), id="bar", hidden=True),
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
    """Return what a browser may do with the page: use its own style, script and pictures, no more."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _values(sheet: Sheet, report: Report) -> dict[str, Any]:
    axis = next((r.axis for r in report.recordings if r.axis), None) or next(
        (run.axis for run in report.runs if run.axis), None
    )
    return {
        "drawings": sheet.values,
        "start_ms": axis.start_ns / 1e6 if axis is not None and axis.clock == "utc" else None,
        "end": axis.duration_s if axis is not None else 1.0,
    }


# Parts


def _write_header(report: Report) -> Markup:
    counts = [(len(report.recordings), "recording"), (len(report.runs), "run")]
    kind = " and ".join(f"{n} {what}{'s' * (n > 1)}" for n, what in counts if n)
    return tag("header", tag("p", f"Report on {kind}", class_="kind"), tag("h1", report.title))


def _write_first(sheet: Sheet, report: Report) -> Markup:
    """Return the first screen: the story, and the map, or a picture where there is none."""
    sentences = [
        tag("p", sentence, class_="bad" if _is_bad(sentence) else None) for sentence in summarise(report)
    ]
    drawn = draw_tracks(sheet, report.map) if report.map is not None else _draw_looks(report)
    return tag(
        "section", tag("div", sentences, class_="story"), drawn, class_=f"first{'' if drawn else ' alone'}"
    )


def _draw_looks(report: Report) -> Markup | None:
    """Return what sensors saw, where nothing says where they were."""
    found = [drawn for recording in report.recordings if (drawn := draw_look(recording))]
    return tag("div", found) if found else None


def _is_bad(sentence: str) -> bool:
    return sentence.startswith(NOT_TRUSTED) or " was bad: " in sentence or " were bad: " in sentence


def _list_parts(sheet: Sheet, report: Report) -> list[tuple[str, str, Markup, bool]]:
    """Return key, title, content and whether it is open, of each section; empty ones are left out later."""
    runs = write_errors(sheet, report) if report.runs else Markup("")
    return [
        ("there", "What was there", write_streams(sheet, report), True),
        ("broke", "What broke", write_problems(report), True),
        ("went", "Where the robot went", write_ways(sheet, report), True),
        ("known", "How well that is known", runs, True),
        ("signals", "What the sensors measured", write_signals(sheet, report), False),
        ("frames", "Frames", write_frames(report), False),
        ("made", "What this was made from", write_origins(report), True),
        ("cite", "How to cite it", write_citation(report), True),
    ]


def _write_part(key: str, title: str, content: Child, is_open: bool) -> Markup:
    summary = tag("summary", tag("h2", title))
    return tag("details", summary, content, class_="part", id=key, open=is_open)


def _write_footer(report: Report) -> Markup:
    return tag("footer", tag("p", f"Made by transect {__version__}: ", tag("code", clean(report.command))))
