"""A PostgreSQL server of the tests' own: in an empty folder, with a socket there, gone with the tests."""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

SETTINGS = ("full_page_writes=off", "synchronous_commit=off", "jit=off")
PR_SET_PDEATHSIG = 1


def binaries() -> Path:
    """Return the folder of PostgreSQL's programs, or skip."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found or not list(Path("/usr/share/postgresql").glob("*/extension/postgis.control")):
        pytest.skip("postgis: PostgreSQL with PostGIS is not installed")
    return found[-1].parent


def _account() -> dict[str, object]:
    """Return as whom the server runs: PostgreSQL refuses to be root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


@contextmanager
def running_server() -> Generator[str]:
    """Start a server with PostGIS in its template; yield its address without the database."""
    import psycopg

    programs = binaries()
    account, environment = _account(), {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    if account:
        shutil.chown(folder, "postgres", "postgres")
    try:
        data = folder / "data"
        make = [programs / "initdb", "-D", data, "-U", "transect", "-A", "trust", "-E", "UTF8", "--no-sync"]
        make += ["--locale=C.UTF-8"]
        subprocess.run(make, check=True, capture_output=True, cwd="/", env=environment, **account)  # type: ignore[call-overload]
        options = [part for setting in SETTINGS for part in ("-c", setting)]
        serve = [programs / "postgres", "-D", data, "-k", folder, "-h", "", "-F", *options]
        log = (folder / "log").open("wb")
        server = subprocess.Popen(
            serve, stdout=log, stderr=log, cwd="/", env=environment, preexec_fn=_die_with_parent, **account
        )  # type: ignore[call-overload]
        try:
            address = f"postgresql://transect@/{{}}?host={folder}"
            _await(address.format("template1"), server, folder / "log")
            with psycopg.connect(address.format("template1"), autocommit=True) as db:
                db.execute("CREATE EXTENSION postgis")
            yield address
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(20)
            log.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _await(address: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    import psycopg

    until = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > until:
                raise RuntimeError(log.read_text(errors="replace")) from None
            time.sleep(0.05)
