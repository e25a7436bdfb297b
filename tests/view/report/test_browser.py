"""Pages in a real browser: the cursor, the values, the folding, and that nothing leaves the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.commands import transect
from tests.view.conftest import Watched
from tests.view.report.pages import broken_report, hostile_recording, page_of, write

from transect import formats
from transect.engine.runs import run
from transect.evaluation.runs import judge_run
from transect.simulation.day import WorldOptions, simulate, write_day
from transect.view.report import write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of two runs on a simulated drive, judged by its truth."""
    folder = tmp_path_factory.mktemp("report")
    write_day(
        simulate("rosario", WorldOptions(seconds=6.0, streams=("Odometry", "Imu", "Gps/*"))), folder / "day"
    )
    recording = formats.open(folder / "day")
    for name, gate in (("fused", True), ("without gate", False)):
        ran = run("PoseFusion", recording, set={"fusion.gate": gate}, out=folder / name)
        judge_run(ran, recording, draw=lambda _: None)
    done = transect("report", "fused", "without gate", "-o", "r.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "wrote r.html\n"
    assert (folder / "r.html").stat().st_size < 3_000_000
    return (folder / "r.html").as_uri()


@pytest.fixture(scope="module")
def watched(browser: Browser, address: str) -> Iterator[Watched]:
    watched = Watched(browser, address)
    yield watched
    watched.context.close()


@pytest.fixture
def page(watched: Watched) -> Page:
    watched.page.keyboard.press("Escape")
    return watched.page


def places(page: Page) -> set[str]:
    """Where the cursor stands in the plots over time, as shares of their width."""
    lines = page.locator('svg[data-group="time"] .cursor.on')
    return {
        round(float(x.rstrip("%")), 1)
        for x in lines.evaluate_all("all => all.map(e => e.getAttribute('x1'))")
    }


def hover(page: Page, selector: str, share: float) -> None:
    target = page.locator(selector).first
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    assert box
    page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])


def test_one_cursor_moves_in_all_plots_and_on_the_maps(page: Page):
    assert places(page) == set()
    hover(page, '#accuracy svg.plot[data-group="time"]', 0.8)
    assert places(page) == {80.0}
    strips = page.locator("svg.strip .cursor.on").count()
    assert strips == page.locator("svg.strip").count() > 3
    assert page.locator("circle.here.on").count() >= 2
    told = re.fullmatch(
        r"\+(\d\.\d\d) s · 2018-01-15 15:00:0(\d\.\d\d) UTC", page.locator("#bar b").inner_text()
    )
    end = page.evaluate("JSON.parse(document.getElementById('data').textContent).end")
    assert told
    assert float(told[1]) == pytest.approx(0.8 * end, abs=0.02)
    assert float(told[2]) == pytest.approx(0.8 * end, abs=0.03)  # the day begins at 15:00
    hover(page, "svg.strip", 0.25)
    assert places(page) == {25.0}
    assert "OK" in page.locator("#tip").inner_text()


def test_hovering_shows_the_values_of_both_runs(page: Page):
    hover(page, '#accuracy svg.plot[data-group="time"]', 0.8)
    value = page.locator("#accuracy figure output").first.inner_text()
    assert re.fullmatch(r"fused [\d.e-]+ m; without gate [\d.e-]+ m", value), value
    assert value in page.locator("#tip").inner_text()


def test_a_click_pins_the_cursor_keys_move_it_and_escape_lets_it_go(page: Page):
    hover(page, '#accuracy svg.plot[data-group="time"]', 0.5)
    page.mouse.down()
    page.mouse.up()
    page.mouse.move(2, 2)
    assert places(page) == {50.0}
    page.locator("svg.strip").first.focus()
    page.keyboard.press("ArrowRight")
    assert places(page) == {50.5}
    page.keyboard.press("Escape")
    assert places(page) == set()


def test_a_track_on_the_map_tells_its_time(page: Page):
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    at = page.evaluate(
        """() => { const map = document.querySelector('svg.map');
        const track = JSON.parse(document.getElementById('data').textContent).drawings[map.id].tracks.at(-1);
        const box = map.getBoundingClientRect(), k = track.t.length >> 1;
        return [box.left + track.x[k] * box.width / 100, box.top + track.y[k] * box.height / 100]; }"""
    )
    page.mouse.move(*at)
    assert " s · " in page.locator("#tip").inner_text()
    assert len(places(page)) == 1


def test_sections_fold_one_by_one_and_all_at_once(page: Page):
    part = page.locator("#problems")
    part.locator("summary").first.click()
    assert part.get_attribute("open") is None
    page.locator('nav a[href="#problems"]').click()
    assert part.get_attribute("open") is not None
    page.locator("#fold").click()
    assert page.locator("details.part[open]").count() == 0
    page.locator("#fold").click()
    assert page.locator("details.part[open]").count() == page.locator("details.part").count() == 8


def test_nothing_leaves_the_page_and_the_browser_has_nothing_to_say(watched: Watched):
    assert watched.said == []
    assert watched.elsewhere == []
    assert len(watched.asked) >= 1


def test_it_is_whole_without_javascript_and_fits_a_phone(browser: Browser, address: str):
    phone = {"width": 380, "height": 800}
    still = Watched(browser, address, java_script_enabled=False, viewport=phone, color_scheme="dark")
    assert "position RMSE is" in still.page.locator(".story").inner_text()
    assert still.page.locator("svg.plot").first.is_visible()
    assert still.page.locator("#bar").is_hidden()
    still.page.locator("#frames summary").first.click()
    assert still.page.locator("#frames ul.tree").is_visible()
    widths = [still.page.locator(name).evaluate("e => e.scrollWidth") for name in ("html", "body")]
    assert max(widths) <= 380
    assert still.said == []
    still.context.close()


def test_it_prints_with_every_section_open(browser: Browser, address: str):
    printed = Watched(browser, address)
    printed.page.emulate_media(media="print")
    assert printed.page.locator("nav").is_hidden()
    assert printed.page.locator("#frames ul.tree").is_visible()
    assert printed.page.pdf()[:5] == b"%PDF-"
    printed.context.close()


def test_hostile_names_run_nothing(browser: Browser, tmp_path: Path):
    hostile = Watched(browser, write(page_of(hostile_recording()), tmp_path))
    hover(hostile.page, "svg.strip", 0.5)
    assert "onerror" in hostile.page.locator("#tip").inner_text()
    assert hostile.page.locator("img").count() == 0
    assert hostile.said == []
    assert hostile.elsewhere == []
    hostile.context.close()


def test_a_bad_moment_is_one_click_away(browser: Browser, tmp_path: Path):
    broken = Watched(browser, write(write_page(broken_report()), tmp_path))
    jump = broken.page.locator(".problem.BAD .jump").first
    jump.click()
    assert len(places(broken.page)) == 1
    assert (
        broken.page.locator("#bar b").inner_text().startswith(f"+{float(jump.get_attribute('data-t')):.2f} s")
    )
    assert broken.said == []
    broken.context.close()
