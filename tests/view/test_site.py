"""The site of all pages: built without a network, read from the disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.test_project import EXAMPLES, ROOT
from tests.view.conftest import Watched
from tools.site import markdown

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FETCHED = re.compile(r"<(?:img|script|iframe|link)[^>]* (?:src|href)=\"([^\"]+)\"")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the site; building it is strict, so that a broken link or anchor is an error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        from mkdocs.commands.build import build
        from mkdocs.config import load_config

        folder = tmp_path_factory.mktemp("site")
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
        config.plugins.run_event("startup", command="build", dirty=False)
        build(config)
        config.plugins.run_event("shutdown")
        yield folder


def headings(page: Path) -> set[str]:
    found = re.findall(r"<h[1-6] id=[^>]*>(.*?)<a class=", page.read_text("utf-8"))
    return {unescape(re.sub(r"<[^>]*>", "", text)).strip() for text in found}


def test_every_page_and_picture_is_there_and_no_page_fetches_anything(site: Path):
    pages = sorted(site.rglob("*.html"))
    written = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert written - {path.relative_to(site) for path in pages} == {Path("README.html")}  # is index.html
    for page in pages:
        text = page.read_text("utf-8")
        names = [unescape(name).partition("?")[0] for name in FETCHED.findall(text)]
        if page.name != "404.html":  # whose links are from the root of a server
            assert [name for name in names if not (page.parent / name).is_file()] == [], page
        assert not re.search(r"<p>[^<]*\n- ", text), f"a list of {page} is no list"


def test_the_reference_has_every_command_format_node_compound_check_and_example(site: Path):
    from transect import cli, formats
    from transect.engine.overview import list_compounds, list_nodes
    from transect.integrity import catalogue

    reference = site / "reference"
    verbs = cli.command.list_commands(None)  # pyright: ignore[reportArgumentType]
    assert headings(reference / "cli.html") >= set(verbs) | {"archive build", "draw track"}
    assert headings(reference / "formats-list.html") >= set(formats.names())
    assert headings(reference / "nodes.html") >= {node.name for node in list_nodes()}
    assert headings(reference / "compounds.html") >= {each.name for each in list_compounds()}
    checks = {f"{check.id} {name}" for name, check in catalogue.load_all().items()}
    assert headings(reference / "checks.html") >= checks
    assert headings(site / "examples.html") >= {file.name for file in EXAMPLES}
    assert {"absolute_error", "Pairs", ".statistics"} <= headings(reference / "evaluation.html")
    shown = (reference / "evaluation.html").read_text("utf-8")
    assert "If the positions do not determine the alignment" in shown  # what it raises


def test_the_site_is_searched_from_the_disk_without_a_network(site: Path, browser: Browser):
    watched = Watched(browser, (site / "index.html").as_uri())
    watched.page.click(".md-search__input")
    watched.page.type(".md-search__input", "quaternion")
    watched.page.wait_for_selector(".md-search-result__item")
    found = watched.page.locator(".md-search-result__link").first.get_attribute("href")
    assert found is not None
    assert "geometry" in found
    assert watched.said == []
    assert [url for url in watched.asked if not url.startswith(("file:", "data:", "blob:"))] == []
    watched.context.close()


def test_a_signature_keeps_its_defaults_and_signs_and_drops_the_quotes_of_annotations():
    from tools.site.api import signature_of

    def read(
        self: object, path: str, /, text: Path | None = None, *, unit: str = "", **others: int
    ) -> str: ...

    line = "read(path: str, /, text: Path | None = None, *, unit: str = '', **others: int) -> str"
    assert signature_of("read", read) == f"```python\n{line}\n```\n"
    broken = ["path: str", "/", "text: Path | None = None", "*", "unit: str = ''", "**others: int"]
    long = signature_of("read" * 20, read)
    assert [part.strip().rstrip(",") for part in long.splitlines()[2:-2]] == broken


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("So:\n- a\n- b\n", "So:\n\n- a\n- b\n"),
        ("- a\n  more\n- b\n", "- a\n  more\n- b\n"),
        ("```json schema\nSo:\n- a\n```\n", "```json\nSo:\n- a\n```\n"),
        ("| `a\\|b` | c\\|d |\n", "| `a|b` | c\\|d |\n"),
        ("~~~sh\n```\n- a\n~~~\n1. b\n", "~~~sh\n```\n- a\n~~~\n1. b\n"),
    ],
)
def test_lists_and_fences_are_read_as_github_reads_them(text: str, expected: str):
    assert markdown.adapt(text) == expected


def test_columns_without_a_word_are_left_out_and_bars_stay_text():
    assert markdown.table_of(("a", "b"), [("x|y", ""), ("z", "")]) == "| a |\n| --- |\n| x\\|y |\n| z |\n"
    assert markdown.table_of(("a", "b"), []) == ""
