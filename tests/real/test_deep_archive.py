"""Packages of LADEE's bundle, against those that NASA's own tool made of it (`valid/`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from transect.archive.deep import write_packages

URL = "https://atmos.nmsu.edu/PDS/data/PDS4/LADEE/mission_bundle"


@pytest.mark.parametrize("manifest", ["checksum_manifest", "transfer_manifest", "sip"])
def test_manifests_are_those_of_nasa_byte_by_byte(manifest: str, real_data: Path, tmp_path: Path):
    ladee = real_data / "pds4/bundles/ladee_test"
    write_packages(ladee / "mission_bundle", tmp_path / "out", URL, "PDS_ATM", "2020-06-18T00:00:00Z")
    name = f"ladee_mission_bundle_v1.0_{manifest}_v1.0"
    assert (tmp_path / "out" / f"{name}.tab").read_bytes() == (
        ladee / "valid" / f"{name}_20200618.tab"
    ).read_bytes()
