"""How bundles are cited, by what their labels say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.archive.sample import sample_bundle
from tests.commands import transect

from transect.archive.builder import build_bundle
from transect.archive.bundle_reader import bundle_citation
from transect.archive.identifiers import Lid
from transect.archive.labels.areas import CitationInformation
from transect.archive.standard import INSIGHT_STANDARD, RECENT_STANDARD, Standard
from transect.recording.citation import Author


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7 of three bytes")
    return tmp_path / "paper.pdf"


@pytest.mark.parametrize("standard", [INSIGHT_STANDARD, RECENT_STANDARD])
def test_authors_are_read_from_old_and_new_labels(standard: Standard, paper: Path, tmp_path: Path):
    citation = CitationInformation(
        "A sample", 2024, "Doe, Jo; A University", "10.17189/1234", ("rover", "dust")
    )
    other = (Lid("urn:nasa:pds:other:document"), "Document")
    made = sample_bundle(paper, citation=citation, standard=standard, secondary=(other,))
    found = bundle_citation(build_bundle(made, tmp_path / "b").folder)
    assert {author.name for author in found.authors} == {"Doe, Jo", "A University"}
    assert (found.title, found.year, found.version) == ("Sample bundle", 2024, "1.0")
    assert (found.doi, found.keywords) == ("10.17189/1234", ["rover", "dust"])
    assert (found.identifier, found.publisher) == ("urn:nasa:pds:sample::1.0", "NASA Planetary Data System")
    assert [other.identifier for other in found.related] == ["urn:nasa:pds:other:document"]


def test_authors_separated_by_commas_are_distinguished(paper: Path, tmp_path: Path):
    citation = CitationInformation("A sample", 2024, "Doe, J. K., Roe, R. and Poe, E.")
    made = sample_bundle(paper, citation=citation, standard=INSIGHT_STANDARD)
    found = bundle_citation(build_bundle(made, tmp_path / "b").folder)
    assert [author.name for author in found.authors] == ["Doe, J. K.", "Roe, R.", "Poe, E."]


def test_the_command_prints_a_line_and_writes_metadata(paper: Path, tmp_path: Path):
    bundle = build_bundle(sample_bundle(paper), tmp_path / "b").folder
    done = transect("archive", "cite", bundle, "-o", tmp_path / "datacite.json")
    assert done.stdout == (
        "Doe, Jo (2024): Sample bundle. Version 1.0. NASA Planetary Data System. PDS4 bundle. "
        "urn:nasa:pds:sample::1.0\n"
    )
    assert "no DOI yet" in done.stderr
    written = json.loads((tmp_path / "datacite.json").read_text())
    assert written["titles"] == [{"title": "Sample bundle"}]
    said = json.loads(transect("archive", "cite", bundle, "--publisher", "Us", "--json").stdout)
    assert said["datacite"] == {**written, "publisher": {"name": "Us"}}
    assert transect("archive", "cite", bundle, "-o", tmp_path / "datacite.json").returncode == 2


def test_a_bundle_without_authors_asks_for_them(paper: Path, tmp_path: Path):
    bundle = build_bundle(
        sample_bundle(paper, citation=CitationInformation("A sample", 2024)), tmp_path / "b"
    ).folder
    done = transect("archive", "cite", bundle)
    assert (done.returncode, "--author" in done.stderr) == (2, True)
    assert bundle_citation(bundle, ["Doe, Jo"]).authors == [Author("Doe, Jo")]
    assert transect("archive", "cite", bundle / "data_raw").returncode == 1


def test_a_bundle_that_does_not_say_how_it_is_cited_is_refused(paper: Path, tmp_path: Path):
    folder = build_bundle(sample_bundle(paper), tmp_path / "b").folder
    label = next(folder.glob("bundle*.xml"))
    text = label.read_text("utf-8")
    start, end = text.index("<Citation_Information>"), text.index("</Citation_Information>")
    label.write_text(text[:start] + text[end + len("</Citation_Information>") :], "utf-8")
    done = transect("archive", "cite", folder)
    assert (done.returncode, "does not say how it is cited" in done.stderr) == (1, True)
