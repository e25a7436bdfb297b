"""`transect archive validate PATH...`: what is wrong with PDS4 labels, collections and bundles."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import BAD_VERDICT
from ..shared.options import add_options

if TYPE_CHECKING:
    from transect.archive.validation.problems import Problem
    from transect.archive.validation.report import Report

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
MOST_SHOWN = 200
OFTEN = 3
"""Labels of which the same is said, from which on it is said once."""

choices = add_options(
    click.option("--rule", type=click.Choice(["label", "folder", "collection", "bundle"]),
                 help="What PATH is; default: label for a file, folder for a folder."),
    click.option("--schemas", multiple=True, type=FOLDER, help="Folder of .xsd and .sch files; repeatable."),
    click.option("--schema", "xsd", multiple=True, type=FILE, help="XSD instead of what labels name."),
    click.option("--schematron", "sch", multiple=True, type=FILE, help="Schematron files likewise."),
    click.option("--skip-content", is_flag=True, help="Do not look at data files."),
    click.option("--skip-context", is_flag=True, help="Context products need not be registered."),
    click.option("--skip-context-mismatches", is_flag=True, help="Their names and types are not compared."),
    click.option("--skip-products", is_flag=True, help="Check only how labels fit together."),
    click.option("--skip-formats", is_flag=True, help="Do not compare values with field_format."),
    click.option("--context-references", is_flag=True, help="Collections must name those of their products."),
    click.option("--strict-fields", is_flag=True, help="Warn of anything but blanks between fixed fields."),
    click.option("--lenient-members", is_flag=True, help="A member that is not there is a warning."),
    click.option("--complete-descriptions", is_flag=True, help="Warn of bytes that no object describes."),
    click.option("--allow-unlabelled", is_flag=True, help="Do not warn of files that no label names."),
    click.option("--no-recursion", is_flag=True, help="Do not look into folders of a folder."),
    click.option("--extension", "extensions", multiple=True, type=click.Choice(["xml", "lblx"]),
                 help="Of labels; default: both."),
    click.option("--context", "context_file", type=FILE, help="NASA's registered_context_products.json."),
    click.option("--add-context", "added_context", multiple=True, type=FILE, help="More of them."),
    click.option("--catalog", "catalogs", multiple=True, type=FILE,
                 help="OASIS XML catalog that says where schemas are; repeatable."),
    click.option("--alternate-file-paths", "--alternate_file_paths", "alternates", metavar="DIR,...",
                 help="Folders whose products count as members that are there, unjudged."),
    click.option("--checksums", type=FILE, help="Manifest of MD5 sums that files must have."),
    click.option("--against", type=click.Path(path_type=Path, exists=True),
                 help="An older state: what keeps its version must keep its bytes."),
)  # fmt: skip


@click.command("validate")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--targets", type=FILE, help="File that lists paths, one in a line.")
@choices
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes side by side."
)
@click.option("--info", is_flag=True, help="Show also what is neither an error nor a warning.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    paths: tuple[Path, ...], targets: Path | None, jobs: int, info: bool, as_json: bool, **choice: Any
) -> int:
    """Validate PDS4 labels, folders of labels, collections or bundles.

    Well-formedness, XSD and Schematron, then tables, arrays, files, identifiers, inventories and references.
    Ends with 0 if all is valid, or has warnings only, and with 4 if not.
    """
    from transect.archive.validation.options import Options
    from transect.archive.validation.running import validate

    from ..shared.output import show_json

    listed = targets.read_text("utf-8").split("\n") if targets is not None else []
    paths = (*paths, *(Path(line.strip()) for line in listed if line.strip()))
    if not paths:
        raise click.UsageError("name a PATH, or a file of them by --targets")
    report = validate(paths, Options(**_options(choice)), jobs)
    if as_json:
        show_json(report.to_dict())
    else:
        show_report(report, info)
    return BAD_VERDICT if report.verdict == "invalid" else 0


def _options(choice: dict[str, Any]) -> dict[str, Any]:
    """Return options as the validator calls them: it is told what to check, people what to leave out."""
    skipped = {
        "skip_content": "content",
        "skip_context": "context",
        "skip_context_mismatches": "mismatches",
        "skip_products": "products",
        "skip_formats": "formats",
        "lenient_members": "strict_members",
        "allow_unlabelled": "unlabelled",
        "no_recursion": "recurse",
    }
    options = {new: not choice.pop(old) for old, new in skipped.items()}
    extensions = tuple(f".{each}" for each in choice.pop("extensions"))
    if extensions:
        options["extensions"] = extensions  # pyright: ignore[reportArgumentType]
    named = (choice.pop("alternates") or "").split(",")
    options["alternates"] = tuple(map(_folder, filter(None, named)))  # pyright: ignore[reportArgumentType]
    return {**options, "complete": choice.pop("complete_descriptions"), **choice}


def _folder(name: str) -> Path:
    from transect.errors import UsageError

    path = Path(name.strip())
    if not path.is_dir():
        raise UsageError(f"there is no folder {path}", hint="--alternate-file-paths DIR,DIR")
    return path


def show_report(report: Report, info: bool = False) -> None:
    """Print what was not checked, what is wrong by file, and the verdict."""
    for note in report.notes:
        click.echo(f"note: {note}")
    shown = _merge([each for each in report.problems if info or each.severity != "info"])
    shown.sort(key=lambda each: each.file)  # one heading for each file
    before = None
    for each in shown[:MOST_SHOWN]:
        if each.file != before:
            click.echo(click.style(each.file or "all labels", bold=True))
            before = each.file
        for line in _lines(each):
            click.echo(line)
    if len(shown) > MOST_SHOWN:
        click.echo(f"... and {len(shown) - MOST_SHOWN} more; all of them: --json")
    counts = report.counts
    skipped = f", {report.skipped} older ones left out" if report.skipped else ""
    parts = ", ".join(f"{_number(counts[each], each)}" for each in ("error", "warning"))
    click.echo(f"{report.headline}: {parts} in {_number(report.labels, 'label')}{skipped}")


def _merge(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems; what is said of several labels in the same words is said once, of all of them."""
    same: dict[tuple[str, str], list[Problem]] = {}
    for each in problems:
        same.setdefault((each.type, each.text), []).append(each)
    merged: list[Problem] = []
    for found in same.values():
        files = {each.file for each in found}
        if len(files) < OFTEN:
            merged += found
        else:
            place = f"{found[0].file}:{found[0].line}" if found[0].line else found[0].file
            said = f"{found[0].text} (in {len(files)} labels, first {place})"
            merged.append(dataclasses.replace(found[0], text=said, file="", line=0))
    return merged


def _lines(each: Problem) -> Iterator[str]:
    """Give a problem as lines that fit the terminal: type and place, text, and its cause."""
    import shutil
    import textwrap

    width = max(shutil.get_terminal_size().columns, 40)
    places = [
        f"line {each.line}" if each.line else "",
        each.data,
        each.part,
        f"field {each.field}" if each.field else "",
        f"record {each.record}" if each.record else "",
    ]
    place = ", ".join(part for part in places if part)
    yield f"  {each.type}" + (f"  {place}" if place else "")
    wrapper = textwrap.TextWrapper(
        width, initial_indent="    ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    yield from wrapper.wrap(each.text)
    yield from wrapper.wrap(f"cause: {each.cause}") if each.cause else ()


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
