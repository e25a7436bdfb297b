"""Schemas: where they are looked for, and how they are fetched from a site, here one of our own."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.commands import transect

from transect.archive import schemas
from transect.errors import TransectError

NAME = "PDS4_PDS_TEST"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A site with the two files of one schema, which are the only pinned ones."""
    root = tmp_path / "site"
    folder = root / "pds4" / "pds" / "v1"
    folder.mkdir(parents=True)
    lines: list[str] = []
    for suffix in ("xsd", "sch"):
        content = f"<{suffix}/>".encode()
        (folder / f"{NAME}.{suffix}").write_bytes(content)
        lines.append(f"{hashlib.sha256(content).hexdigest()}  pds4/pds/v1/{NAME}.{suffix}\n")
    (tmp_path / "pins").write_text("".join(lines))
    monkeypatch.setattr(schemas, "CHECKSUM_FILE", tmp_path / "pins")
    monkeypatch.setattr(schemas, "DEFAULT", (NAME,))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=root))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_schemas_are_fetched_once_into_the_user_s_folder_and_found_there(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    done = transect("archive", "schemas", "fetch", TRANSECT_PDS4_SITE=site)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 files fetched, 0 up to date")
    assert transect("archive", "schemas", "fetch", TRANSECT_PDS4_SITE=site).stdout.startswith(
        "0 files fetched, 2"
    )
    found = schemas.find_schemas()
    assert found.names == [f"{NAME}.sch", f"{NAME}.xsd"]
    path = found.find(f"https://pds.nasa.gov/pds4/pds/v1/{NAME}.xsd")
    assert path is not None
    assert path.read_bytes() == b"<xsd/>"
    assert transect("archive", "schemas", "list").stdout.split() == found.names


def test_a_file_that_is_not_the_pinned_one_is_refused_and_not_kept(site: str, tmp_path: Path) -> None:
    (tmp_path / "site" / "pds4" / "pds" / "v1" / f"{NAME}.xsd").write_bytes(b"<other/>")
    with pytest.raises(TransectError, match="not the file that is pinned"):
        list(schemas.fetch([NAME], tmp_path / "here", site))
    assert not (tmp_path / "here" / f"{NAME}.xsd").exists()


def test_without_a_network_the_error_says_so_and_what_to_do(site: str, tmp_path: Path) -> None:
    del site  # the pins; nobody answers at that other address
    done = transect("archive", "schemas", "fetch", "-o", tmp_path, TRANSECT_PDS4_SITE="http://127.0.0.1:9")
    assert done.returncode == 1
    assert "no network, or the site does not answer" in done.stderr
    assert "--schemas" in done.stderr


def test_a_file_that_the_site_does_not_have_is_named(site: str, tmp_path: Path) -> None:
    (tmp_path / "site" / "pds4" / "pds" / "v1" / f"{NAME}.xsd").unlink()
    with pytest.raises(TransectError, match="cannot be fetched") as caught:
        list(schemas.fetch([NAME], tmp_path / "here", site))
    assert "404" in caught.value.why


def test_a_schema_that_nobody_pinned_is_a_usage_error_with_a_hint() -> None:
    done = transect("archive", "schemas", "fetch", "PDS4_PDS_1B1O")
    assert done.returncode == 2
    assert "PDS4_PDS_1B10" in done.stderr


def test_pins_are_the_official_names_and_sums() -> None:
    found = {pin.name: pin for pin in schemas.pins()}
    assert {f"{name}.{suffix}" for name in schemas.DEFAULT for suffix in ("xsd", "sch")} <= set(found)
    assert found["PDS4_PDS_1B10.xsd"].path == "pds4/pds/v1/PDS4_PDS_1B10.xsd"
    assert all(len(pin.sha256) == 64 for pin in found.values())


def test_folders_that_are_named_win_over_the_environment_and_that_over_the_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("given", "named", "home/transect/pds4"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "PDS4_X.xsd").write_text(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TRANSECT_PDS4_SCHEMAS", raising=False)

    def found(*given: Path) -> str:
        path = schemas.find_schemas(given).find("PDS4_X.xsd")
        return "" if path is None else path.read_text()

    assert found() == "home/transect/pds4"
    monkeypatch.setenv("TRANSECT_PDS4_SCHEMAS", str(tmp_path / "named"))
    assert found() == "named"
    assert found(tmp_path / "given") == "given"
    monkeypatch.setenv("TRANSECT_PDS4_SCHEMAS", str(tmp_path / "none"))
    with pytest.raises(TransectError, match="folder of schemas"):
        schemas.find_schemas()
