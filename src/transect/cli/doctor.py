"""`transect doctor`: the environment, for a bug report."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import click

from .shared.options import json_option

NAME_END = re.compile(r"[^\w.-]")
"""End of the name in a requirement such as `psycopg[binary]>=3.2` or `numpy<3,>=2.1`."""


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Print versions and the environment for a bug report."""
    from transect.recording import cache

    from .shared.output import show_json

    facts = {
        "transect": version("transect"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": os.cpu_count(),
        "cache": f"{cache.folder()} ({'writable' if _writable(cache.folder()) else 'NOT writable'})",
        **{f"plug-in {name}": text for name, text in _plugins().items()},
        "free disk space of the cache": f"{_free(cache.folder()) / 1e9:.1f} GB",
    }
    packages = _packages()
    if as_json:
        show_json({**facts, "packages": packages})
        return
    for name, value in {**facts, **{k: v or "missing" for k, v in packages.items()}}.items():
        click.echo(f"{name:<32} {value}")


def _plugins() -> dict[str, str]:
    """Return the contributions of installed plug-ins, or why they cannot be used."""
    from transect.base import plugins

    offered = {plugin.name: ", ".join(plugin.list_offered()) for plugin in plugins.installed_plugins()}
    return {**offered, **{name: f"NOT usable: {error.why}" for name, error in plugins.failures().items()}}


def _packages() -> dict[str, str | None]:
    """Return the version of every package that transect or one of its extras requires, None if absent."""
    names = {NAME_END.split(requirement, maxsplit=1)[0] for requirement in requires("transect") or ()}
    return {name: _version(name) for name in sorted(names - {"transect"})}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _existing(folder: Path) -> Path:
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def _writable(folder: Path) -> bool:
    """Return whether a file can be written; permissions are not conclusive for root or network drives."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _free(folder: Path) -> int:
    return shutil.disk_usage(_existing(folder)).free
