"""The page itself: one file, safe, and reproducible for any recording."""

import base64
import hashlib
import json
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from tests.commands import transect
from tests.integrity.recordings import drive
from tests.view.report.pages import HOSTILE, broken_drive, broken_report, hostile_recording, page_of
from tests.view.report.test_markup import Seen

from transect.errors import ParseError, UsageError
from transect.integrity import check
from transect.recording import Recording
from transect.view.report import write_page
from transect.view.report.extraction import recorded_by


@pytest.fixture(scope="module")
def broken() -> str:
    return write_page(broken_report())


def elements(page: str, name: str) -> list[str]:
    return re.findall(rf"<{name}[ >].*?</{name}>", page, re.DOTALL)


def test_its_policy_allows_its_own_style_and_script_and_nothing_else(broken: str):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', broken)
    assert policy
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].replace("&#x27;", "'").split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for kind, name in (("style-src", "style"), ("script-src", "script")):
        [content] = re.findall(rf"<{name}>(.*?)</{name}>", broken, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[kind] == f"'sha256-{digest}'"
    assert "unsafe" not in policy[1]


def test_it_names_no_other_file_and_has_no_style_or_handler_in_an_element(broken: str):
    seen = Seen(broken)
    names = {name for name, _ in seen.attributes}
    assert not {name for name in names if name.startswith("on")}
    assert "style" not in names
    addresses = [value for name, value in seen.attributes if name in ("href", "src", "action", "xlink:href")]
    assert all(value and value.startswith(("#", "data:image/webp;base64,")) for value in addresses)
    assert "http:" not in broken
    assert "https:" not in broken
    assert "eval(" not in broken


def test_hostile_names_in_a_log_stay_text_everywhere():
    page = page_of(hostile_recording())
    seen = Seen(page)
    assert "img" not in seen.elements
    assert "b" in seen.elements
    assert seen.elements.count("script") == 2
    assert "onerror" not in {name for name, _ in seen.attributes}
    assert HOSTILE.replace("\u202e", "\ufffd") in seen.text
    assert "\u202e" not in page
    [data] = re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data)["drawings"]


def test_the_same_recording_gives_the_same_bytes():
    assert page_of(drive(5), check=False) == page_of(drive(5), check=False)


def test_a_recording_of_two_hours_and_720_000_rows_is_a_small_page_that_keeps_its_spike():
    t = 1_700_000_000_000_000_000 + np.arange(720_000) * 10_000_000
    value = np.random.default_rng(0).normal(size=len(t))
    value[345_678] = 99.0
    from transect.recording import stream_of_values
    from transect.types import Imu

    page = page_of(Recording("long", (stream_of_values("imu", t, {"gyro_x": value}, type=Imu),)), check=False)
    assert len(page) < 200_000
    [data] = re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)
    [line] = next(d["lines"] for d in json.loads(data)["drawings"].values() if "lines" in d)
    assert max(line["y"]) == 99.0
    assert len(line["y"]) <= 720
    assert "720000 samples: minimum and maximum of every 20 s" in page


def test_tables_verdicts_hashes_and_the_command_are_there(broken: str):
    text = Seen(broken).text
    for words in (
        "Streams",
        "Problems",
        "Trajectory",
        "Citation",
        "transect report there",
    ):
        assert words in text
    assert "as in Table 6 of the AMEDS paper" in text
    assert "No citation is given for these data" in text
    assert len(elements(broken, "svg")) > 5
    assert len(broken) < 3_000_000


def test_pictures_of_bad_moments_are_inside_of_the_page():
    page = page_of(broken_drive(), pictures=1)
    pictures = re.findall(r'<img src="data:image/webp;base64,([^"]+)" width="(\d+)"', page)
    assert len(pictures) == 1
    assert all(base64.b64decode(content)[8:12] == b"WEBP" and int(width) > 100 for content, width in pictures)
    assert len(page) < 12_000_000


# The command


def test_a_path_that_is_not_there_is_refused(tmp_path: Path):
    done = transect("report", "nowhere", "-o", tmp_path / "r.html")
    assert done.returncode == 1
    assert "nowhere" in done.stderr
    assert not (tmp_path / "r.html").exists()


def test_a_citation_that_lacks_its_authors_is_refused_with_its_line(tmp_path: Path):
    (tmp_path / "c.yaml").write_text("title: A drive\nyear: 2026\npublisher: us\n", "utf-8")
    (tmp_path / "t.csv").write_text("t,x,y\n1,0,0\n2,1,0\n3,2,0\n", "utf-8")
    done = transect("report", "t.csv", "--citation", "c.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "authors" in done.stderr


def test_verdicts_of_an_earlier_check_are_used_as_they_are(tmp_path: Path):
    recording = drive(6)
    verdicts = check(recording)
    verdicts.write(tmp_path / "verdicts.parquet")
    rows = verdicts.table.num_rows
    again = page_of(recording, verdicts=tmp_path / "verdicts.parquet")
    assert rows > 0
    assert again == page_of(recording)
    with pytest.raises(UsageError, match="verdicts of another recording"):
        page_of(recording.select("imu"), verdicts=tmp_path / "verdicts.parquet")


def test_a_run_finds_its_recording_from_the_folders_above_it(tmp_path: Path):
    run = tmp_path / "work" / "runs" / "fused"
    run.mkdir(parents=True)
    (tmp_path / "work" / "day").mkdir()
    request = {"recording": {"paths": ["day", "moved"], "format": "rosario", "options": {}}}
    (run / "run.json").write_text(json.dumps({"request": request}), "utf-8")
    assert recorded_by(run)["paths"] == [str(tmp_path / "work" / "day"), "moved"]
    for text in ("{", "[]", '{"request": 3}', '{"request": {"recording": {"paths": [1]}}}'):
        (run / "run.json").write_text(text, "utf-8")
        with pytest.raises(ParseError, match="not a complete run"):
            recorded_by(run)


def test_pictures_that_were_not_opened_are_not_called_read(tmp_path: Path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    whole = cv2.imencode(".png", np.zeros((40, 60), np.uint8))[1].tobytes()
    (folder / "whole.png").write_bytes(whole)
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    page = tmp_path / "page.html"
    done = transect("report", folder, "-o", page, "--no-check", "--pictures", "0")
    assert page.is_file(), done.err
    assert "No data were lost on reading.</p>" not in page.read_text()
    assert "only those needed" in page.read_text()
