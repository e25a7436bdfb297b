"""Packages for the deep archive: manifests whose records are counted here by hand, and what is refused."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]
from tests.archive.sample import sample_bundle
from tests.commands import transect

from transect.archive.builder import build_bundle
from transect.archive.deep_archive import write_packages
from transect.errors import ParseError, UsageError

URL = "https://node.example/data/sample"
BASE = "sample_v1.0_"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deep")
    (folder / "paper.pdf").write_bytes(b"%PDF-1.7 of three bytes")
    return build_bundle(sample_bundle(folder / "paper.pdf"), folder / "sample").folder


@pytest.fixture(scope="module")
def made(bundle: Path) -> Path:
    return write_packages(bundle, bundle.parent / "packages", f"{URL}/", "PDS_GEO").folder


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def test_every_file_of_the_bundle_is_in_each_manifest_once(bundle: Path, made: Path):
    paths = sorted(path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file())
    checksums = (made / f"{BASE}checksum_manifest_v1.0.tab").read_bytes()
    assert checksums == "".join(f"{_md5(bundle / path)}\t{path}\r\n" for path in paths).encode()
    sip = (made / f"{BASE}sip_v1.0.tab").read_bytes().decode().split("\r\n")[:-1]
    assert [line.split("\t")[:3] for line in sip] == [
        [_md5(bundle / path), "MD5", f"{URL}/{path}"] for path in paths
    ]
    transfer = (made / f"{BASE}transfer_manifest_v1.0.tab").read_bytes()
    assert len(transfer) == 512 * len(paths)
    records = [transfer[at : at + 512] for at in range(0, len(transfer), 512)]
    assert {record[510:] for record in records} == {b"\r\n"}
    assert sorted(record[255:510].decode().strip() for record in records) == [f"/{path}" for path in paths]


def test_a_file_is_listed_with_the_product_whose_label_names_it(made: Path):
    lines = (made / f"{BASE}sip_v1.0.tab").read_bytes().decode().split("\r\n")[:-1]
    products = {url.removeprefix(f"{URL}/"): lidvid for _, _, url, lidvid in (x.split("\t") for x in lines)}
    assert products["readme.txt"] == products["bundle_sample.xml"] == "urn:nasa:pds:sample::1.0"
    assert products["document/paper.pdf"] == "urn:nasa:pds:sample:document:paper::1.0"
    inventory = products["browse/collection_browse_inventory.csv"]
    assert inventory == products["browse/collection_browse.xml"] == "urn:nasa:pds:sample:browse::1.0"


def test_the_labels_have_what_can_be_measured_of_the_manifests(made: Path):
    aip, sip = (etree.parse(made / f"{BASE}{kind}_v1.0.xml") for kind in ("aip", "sip"))
    for label in (aip, sip):
        for file in label.iterfind(".//{*}File"):
            path = made / file.findtext("{*}file_name")
            assert int(file.findtext("{*}file_size")) == path.stat().st_size
            assert file.findtext("{*}md5_checksum") == _md5(path)
            assert int(file.findtext("{*}records")) == path.read_bytes().count(b"\r\n")
            assert file.findtext("{*}creation_date_time") == "2024-05-01T12:00:00Z"  # the bundle's files
    assert aip.findtext(".//{*}transfer_manifest_checksum") == _md5(
        made / f"{BASE}transfer_manifest_v1.0.tab"
    )
    assert sip.findtext(".//{*}manifest_checksum") == _md5(made / f"{BASE}sip_v1.0.tab")
    assert sip.findtext(".//{*}aip_label_checksum") == _md5(made / f"{BASE}aip_v1.0.xml")
    assert sip.findtext(".//{*}manifest_url") == f"{URL}/{BASE}sip_v1.0.tab"
    lidvid = f"{aip.findtext('.//{*}logical_identifier')}::{aip.findtext('.//{*}version_id')}"
    assert sip.findtext(".//{*}aip_lidvid") == lidvid


def test_the_command_says_what_it_wrote_and_refuses_what_cannot_be_meant(bundle: Path, tmp_path: Path):
    out = tmp_path / "out"
    done = transect("archive", "deep", bundle, "-o", out, "--url", URL, "--site", "PDS_GEO", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["bundle"] == "urn:nasa:pds:sample::1.0"
    assert (said["files"], sorted(said["written"])) == (30, sorted(path.name for path in out.iterdir()))
    for wrong in (("--url", URL, "--site", "PDS_GEOS"), ("--url", "node/data", "--site", "PDS_GEO")):
        done = transect("archive", "deep", bundle, "-o", tmp_path / "other", *wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert not (tmp_path / "other").exists()
    assert "PDS_GEO" in transect(
        "archive", "deep", bundle, "-o", out, "--url", URL, "--site", "PDS_GEOS"
    ).stderr  # fmt: skip


def test_a_bundle_is_named_by_its_label_where_a_folder_has_several(bundle: Path, made: Path, tmp_path: Path):
    again = write_packages(bundle / "bundle_sample.xml", tmp_path / "out", URL, "PDS_GEO").folder
    for path in made.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes()
    with pytest.raises(ParseError, match="no bundle"):
        write_packages(bundle / "document/paper.xml", tmp_path / "other", URL, "PDS_GEO")


def test_a_bundle_that_lacks_a_member_is_not_packed(bundle: Path, tmp_path: Path):
    import shutil

    half = tmp_path / "half"
    shutil.copytree(bundle, half)
    (half / "document/paper.pdf").unlink()
    with pytest.raises(ParseError, match=re.escape("paper.pdf")):
        write_packages(half, tmp_path / "out", URL, "PDS_GEO")
    (half / "document/paper.xml").unlink()
    with pytest.raises(ParseError, match=re.escape("urn:nasa:pds:sample:document:paper::1.0 is not here")):
        write_packages(half, tmp_path / "out", URL, "PDS_GEO")
    with pytest.raises(ParseError, match="no bundle"):
        write_packages(half / "document", tmp_path / "out", URL, "PDS_GEO")
    with pytest.raises(UsageError):
        write_packages(bundle, bundle, URL, "PDS_GEO")
    assert not (tmp_path / "out").exists()
