"""Bundles of NASA: packages for the deep archive as its own tool made them, and how they are cited."""

from __future__ import annotations

from pathlib import Path

import pytest

from transect.archive.bundle_reader import bundle_citation
from transect.archive.deep_archive import write_packages
from transect.recording.citation import citation_text, datacite

URL = "https://atmos.nmsu.edu/PDS/data/PDS4/LADEE/mission_bundle"


@pytest.mark.parametrize("manifest", ["checksum_manifest", "transfer_manifest", "sip"])
def test_manifests_are_those_of_nasa_byte_by_byte(manifest: str, real_data: Path, tmp_path: Path):
    ladee = real_data / "pds4/bundles/ladee_test"
    write_packages(ladee / "mission_bundle", tmp_path / "out", URL, "PDS_ATM", "2020-06-18T00:00:00Z")
    name = f"ladee_mission_bundle_v1.0_{manifest}_v1.0"
    assert (tmp_path / "out" / f"{name}.tab").read_bytes() == (
        ladee / "valid" / f"{name}_20200618.tab"
    ).read_bytes()


@pytest.mark.parametrize(
    ("folder", "begins", "ends"),
    [
        (
            "validate-cases/github408/valid",
            "InSight SEIS Science Team (2019): InSight SEIS Data Bundle. Version 3.0. ",
            " PDS4 bundle. https://doi.org/10.17189/1517570",
        ),
        (
            "bundles/naif3",  # "Costa Sitja M.; Semenov B. V.; Barnes M. J."
            "Costa Sitja, M.; Semenov, B. V.; Barnes, M. J. (2022): Mars 2020 Perseverance Rover ",
            " PDS4 bundle. urn:nasa:pds:mars2020.spice::3.0",
        ),
    ],
)
def test_bundles_of_nasa_are_cited_by_their_labels(folder: str, begins: str, ends: str, real_data: Path):
    citation = bundle_citation(real_data / "pds4" / folder)
    line = citation_text(citation)
    assert line.startswith(begins)
    assert line.endswith(ends)
    people = [each["nameType"] == "Personal" for each in datacite(citation)["creators"]]
    assert people == ["," in author.name for author in citation.authors]
