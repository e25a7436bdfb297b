"""`transect archive`: describe, build, validate, cite and pack PDS4 bundles."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import ExitCode
from .shared.options import SuggestingGroup, add_options, json_option, out_option
from .shared.output import show_json

if TYPE_CHECKING:
    from transect.archive.builder import BuiltBundle
    from transect.archive.validation.problems import ValidationProblem, ValidationReport


@click.group(cls=SuggestingGroup)
def command() -> None:
    """Build and check PDS4 archives."""


@command.command("init")
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@click.argument("results", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("archive.yaml"), show_default=True,
    help="New file to write.",
)  # fmt: skip
def init_command(path: Path, results: tuple[Path, ...], out: Path) -> int:
    """Write a commented YAML file that describes the archive of PATH.

    PATH is a recording of any format, the folder of a run, a folder of verdicts, or a store of products;
    RESULTS are folders of runs and of verdicts, trajectories, maps and clouds of the same archive.
    Complete the file, then: transect archive build FILE -o BUNDLE.
    """
    import os

    from transect.archive.assembly.config import parse_config
    from transect.archive.assembly.sources import UNDATED, describe, is_undated
    from transect.base import files

    files.refuse_existing(out)
    named = [os.path.relpath(each.resolve(), out.absolute().parent) for each in (path, *results)]
    text = describe(path, named[0], named[1:])
    files.write_text(out, text)
    if is_undated(parse_config(text, out.absolute())):
        click.echo(f"warning: {UNDATED}", err=True)
    click.echo(f"wrote {out}; complete it, then run: transect archive build {out} -o BUNDLE")
    return 0


CHANGE_TEXTS = {"new": "new", "major": "with new data", "minor": "with a new label", "none": "unchanged"}


@command.command("build")
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The bundle: a folder.")
@click.option(
    "--context", type=click.Path(path_type=Path, dir_okay=False),
    help="registered_context_products.json; default: beside the schemas.",
)  # fmt: skip
@click.option(
    "--as-printed", is_flag=True, help="InSight arm: labels as printed in the SIS, with its errors."
)
@click.option(
    "--products", default="", metavar="STORE",
    help="Archive the products of this store instead of the store that PATH names.",
)  # fmt: skip
@json_option
def build_command(
    path: Path, out: Path, context: Path | None, as_printed: bool, products: str, as_json: bool
) -> int:
    """Build a PDS4 bundle.

    PATH is a file that transect archive init wrote and you completed; or a recording, the folder of a run or
    a store of products, which is described as init would; or a bundle, to build it again.

    A recording of InSight's arm becomes the archive of the InSight SIS. --as-printed labels its tables as in
    appendix E.

    A store on a server is opened only if --products gives its address; a PATH that names one is refused.

    If the bundle exists, its next version is written; unchanged products keep their bytes.
    """
    from transect.archive.assembly.sources import build

    built = build(path, out, context, as_printed=as_printed, products=products)
    if as_json:
        show_json(_built_document(built))
    else:
        show_built(built)
    return ExitCode.DATA_LOST if built.losses else 0


def _built_document(built: BuiltBundle) -> dict[str, object]:
    return {
        "bundle": str(built.lidvid), "folder": str(built.folder), "checksums": str(built.checksums),
        "size": built.size, "products": {str(lidvid): change for lidvid, change in built.changes.items()},
        "removed": [str(lid) for lid in built.removed], "losses": list(built.losses),
        "notes": list(built.notes),
    }  # fmt: skip


def show_built(built: BuiltBundle) -> None:
    """Print the changes of each collection, and the path of the bundle."""
    from transect.base.tables import size_text, table_lines

    rows = [("collection", "version", "products", "")]
    for lidvid, members in built.collections.items():
        counts = Counter(built.changes[each] for each in members)
        said = ", ".join(f"{counts[word]} {text}" for word, text in CHANGE_TEXTS.items() if counts[word])
        rows.append((lidvid.lid.name, str(lidvid.vid), str(len(members)), said))
    click.echo("\n".join(table_lines(rows, right=(2,))))
    for lid in built.removed:
        click.echo(f"removed: {lid}")
    for note in (*built.losses, *built.notes):
        click.echo(f"note: {note}")
    click.echo(
        f"wrote {built.folder}: {built.lidvid}, {size_text(built.size)}; checksums in {built.checksums}"
    )


FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
MAX_PROBLEMS = 200
MIN_LABELS_TO_MERGE = 3
"""Equal problems of at least this number of labels are printed once."""

choices = add_options(
    click.option("--rule", type=click.Choice(["label", "folder", "collection", "bundle"]),
                 help="What PATH is; default: label for a file, folder for a folder."),
    click.option("--schemas", multiple=True, type=FOLDER, help="Folder of .xsd and .sch files."),
    click.option("--schema", "xsd", multiple=True, type=FILE, help="XSD file instead of those in labels."),
    click.option("--schematron", "sch", multiple=True, type=FILE, help="Schematron file likewise."),
    click.option("--skip-content", is_flag=True, help="Do not check data files."),
    click.option("--skip-context", is_flag=True, help="Accept unregistered context products."),
    click.option("--skip-context-mismatches", is_flag=True, help="Do not compare their names and types."),
    click.option("--skip-products", is_flag=True, help="Check only the references between labels."),
    click.option("--skip-formats", is_flag=True, help="Do not check field_format."),
    click.option("--context-references", is_flag=True, help="Collections must list those of members."),
    click.option("--strict-fields", is_flag=True, help="Warn of non-blanks between fixed fields."),
    click.option("--lenient-members", is_flag=True, help="Report a missing member as a warning."),
    click.option("--complete-descriptions", is_flag=True, help="Warn of bytes that no object describes."),
    click.option("--allow-unlabelled", is_flag=True, help="Do not warn of files without a label."),
    click.option("--no-recursion", is_flag=True, help="Do not descend into subfolders."),
    click.option("--extension", "extensions", multiple=True, type=click.Choice(["xml", "lblx"]),
                 help="File extension of labels; default: both."),
    click.option("--context", "context_file", type=FILE, help="NASA's registered_context_products.json."),
    click.option("--add-context", "added_context", multiple=True, type=FILE, help="More context products."),
    click.option("--catalog", "catalogs", multiple=True, type=FILE,
                 help="OASIS XML catalog with the paths of schemas."),
    click.option("--alternate-file-paths", "--alternate_file_paths", "alternates", metavar="DIR,...",
                 help="Folders of products that count as existing members, unchecked."),
    click.option("--checksums", type=FILE, help="Manifest of MD5 checksums to verify."),
    click.option("--against", type=click.Path(path_type=Path, exists=True),
                 help="An older state: products of equal version must be identical."),
)  # fmt: skip


@command.command("validate")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--targets", type=FILE, help="File with one path per line.")
@choices
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Number of parallel processes."
)
@click.option("--info", is_flag=True, help="Also show informational messages.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def validate_command(
    paths: tuple[Path, ...], targets: Path | None, jobs: int, info: bool, as_json: bool, **choice: Any
) -> int:
    """Validate PDS4 labels, folders of labels, collections or bundles.

    Checks well-formedness, XSD and Schematron, then tables, arrays, files, identifiers, inventories and
    references. Exits with 0 if everything is valid or has warnings only, and with 4 if not.
    """
    from transect.archive.validation.options import ValidationOptions
    from transect.archive.validation.validator import validate

    from .shared.output import show_json

    listed = targets.read_text("utf-8").split("\n") if targets is not None else []
    paths = (*paths, *(Path(line.strip()) for line in listed if line.strip()))
    if not paths:
        raise click.UsageError("no PATH is given, nor a file of paths by --targets")
    report = validate(paths, ValidationOptions(**_options(choice)), jobs)
    if as_json:
        show_json(report.to_dict())
    else:
        show_report(report, info)
    return ExitCode.BAD_VERDICT if report.verdict == "invalid" else 0


def _options(choice: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the validator, which names what to check; the command line, what to skip."""
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


def show_report(report: ValidationReport, info: bool = False) -> None:
    """Print notes, problems by file, and the verdict."""
    for note in report.notes:
        click.echo(f"note: {note}")
    shown = _merge([each for each in report.problems if info or each.severity != "info"])
    shown.sort(key=lambda each: each.file)  # one heading for each file
    before = None
    for each in shown[:MAX_PROBLEMS]:
        if each.file != before:
            click.echo(click.style(each.file or "all labels", bold=True))
            before = each.file
        for line in _problem_lines(each):
            click.echo(line)
    if len(shown) > MAX_PROBLEMS:
        click.echo(f"... and {len(shown) - MAX_PROBLEMS} more; --json lists all")
    counts = report.counts
    skipped = f", {report.skipped} older ones left out" if report.skipped else ""
    parts = ", ".join(f"{_number(counts[each], each)}" for each in ("error", "warning"))
    click.echo(f"{report.headline}: {parts} in {_number(report.labels, 'label')}{skipped}")


def _merge(problems: Sequence[ValidationProblem]) -> list[ValidationProblem]:
    """Return the problems; equal ones of several labels are merged into one."""
    same: dict[tuple[str, str], list[ValidationProblem]] = {}
    for each in problems:
        same.setdefault((each.type, each.text), []).append(each)
    merged: list[ValidationProblem] = []
    for found in same.values():
        files = {each.file for each in found}
        if len(files) < MIN_LABELS_TO_MERGE:
            merged += found
        else:
            place = f"{found[0].file}:{found[0].line}" if found[0].line else found[0].file
            said = f"{found[0].text} (in {len(files)} labels, first {place})"
            merged.append(dataclasses.replace(found[0], text=said, file="", line=0))
    return merged


def _problem_lines(each: ValidationProblem) -> Iterator[str]:
    """Yield a problem as lines that fit the terminal: type and location, text, and cause."""
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


NEW_FOLDER = click.Path(path_type=Path, file_okay=False)


@command.group("schemas")
def schemas_command() -> None:
    """Fetch and list the schemas for validation."""


@schemas_command.command("fetch")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("-o", "--out", type=NEW_FOLDER, help="Folder to write; default: the user's data folder.")
@click.option("--all", "everything", is_flag=True, help="Fetch all known schemas, about 180 files.")
def fetch_schemas(names: tuple[str, ...], out: Path | None, everything: bool) -> int:
    """Fetch schemas from the official site, and verify their checksums.

    NAME is a schema without .xsd or .sch (PDS4_PDS_1B10); default: those of the InSight arm archive, and a
    recent set. TRANSECT_PDS4_SITE names a mirror of the site.
    """
    from transect.archive import schemas

    known = {pin.name.rpartition(".")[0] for pin in schemas.pins()}
    _refuse_unknown(names, known)
    target = out or schemas.data_folder()
    new = old = 0
    for _, fetched in schemas.fetch(sorted(known) if everything else names or schemas.DEFAULT, target):
        new, old = new + fetched, old + (not fetched)
    click.echo(f"{new} files fetched, {old} up to date: {target}")
    return 0


@schemas_command.command("list")
@click.option(
    "--schemas", "folders", multiple=True, type=NEW_FOLDER, help="Folder to search; may be repeated."
)
def list_schemas(folders: tuple[Path, ...]) -> int:
    """List the installed schemas."""
    from transect.archive.schemas import find_schemas

    found = find_schemas(folders)
    for name in found.names:
        click.echo(name)
    click.echo(f"{len(found.names)} files in {', '.join(map(str, found.folders))}", err=True)
    return 0


def _refuse_unknown(names: tuple[str, ...], known: set[str]) -> None:
    from transect.errors import UsageError, did_you_mean

    for name in names:
        if name not in known:
            raise UsageError(f"there is no known schema {name!r}", hint=did_you_mean(name, known))


@command.command("cite")
@click.argument("bundle", type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Write DataCite metadata to this JSON file."
)
@click.option(
    "--author",
    "authors",
    multiple=True,
    metavar="NAME",
    help="Author instead of the label's: 'Doe, Jane'; may be repeated.",
)
@click.option("--publisher", default="", metavar="NAME", help="Publisher instead of the agency's archive.")
@json_option
def cite_command(
    bundle: Path, out: Path | None, authors: tuple[str, ...], publisher: str, as_json: bool
) -> int:
    """Print the citation of a bundle from its label.

    With -o or --json also the metadata for registering a DOI with DataCite (schema 4).
    """
    import json

    from transect.archive.bundle_reader import bundle_citation
    from transect.base.files import refuse_existing, write_text
    from transect.recording.citation import citation_text, datacite

    from .shared.output import show_json

    citation = bundle_citation(bundle, authors, publisher)
    metadata = datacite(citation)
    if as_json:
        show_json({"citation": citation_text(citation), "datacite": metadata})
    else:
        click.echo(citation_text(citation))
    if out is not None:
        refuse_existing(out)
        write_text(out, json.dumps(metadata, indent=2, ensure_ascii=False) + "\n")
        click.echo(f"wrote {out}", err=True)
    if not citation.doi:
        click.echo("note: the bundle has no DOI yet; DataCite assigns it on registration", err=True)
    return 0


@command.command("deep")
@click.argument("bundle", type=click.Path(path_type=Path, exists=True))
@out_option
@click.option("--url", required=True, metavar="URL", help="Web address of the bundle's folder.")
@click.option("--site", required=True, metavar="SITE", help="Delivering site, such as PDS_GEO.")
@click.option(
    "--created", default="", metavar="TIME", help="Creation time, UTC; default: that of the newest file."
)
@json_option
def deep_command(bundle: Path, out: Path, url: str, site: str, created: str, as_json: bool) -> int:
    """Pack a bundle for the deep archive (AIP and SIP).

    Writes two labels and three manifests to DIR: checksums, transfer and submission. Files are read from
    BUNDLE; nothing is fetched from URL.
    """
    from transect.archive.deep_archive import write_packages

    from .shared.output import show_json

    made = write_packages(bundle, out, url, site, created)
    if as_json:
        show_json({"bundle": str(made.lidvid), "files": made.files, "written": list(made.names)})
        return 0
    click.echo(f"{made.lidvid}: {made.files} files")
    for name in made.names:
        click.echo(f"wrote {out / name}")
    return 0
