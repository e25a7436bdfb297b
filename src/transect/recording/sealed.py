"""Small JSON files under the user's cache folder, each with a checksum of itself."""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transect.base.cache_folder import folder
from transect.base.files import write_text


def seal(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value with the checksum of itself as JSON."""
    return {**value, "seal": zlib.crc32(json.dumps(value).encode())}


def unseal(sealed: Any) -> dict[str, Any]:
    """Return a sealed value; one that was changed is a ValueError."""
    value = {key: part for key, part in sealed.items() if key != "seal"}
    if sealed.get("seal") != zlib.crc32(json.dumps(value).encode()):
        raise ValueError("its checksum does not match")
    return value


def write_sealed(path: Path, value: Mapping[str, Any]) -> None:
    """Write a value with its checksum; a cache that cannot be written is a warning."""
    try:
        write_text(path, json.dumps(seal(value)))
    except OSError as error:
        warn_unwritable(folder(), str(error))


@functools.cache
def warn_unwritable(where: Path, why: str) -> None:
    """Say it once: every file of a recording would say it again."""
    warn(f"the cache cannot be written ({where}): {why}")


def warn(text: str) -> None:
    """Warn through the logger of the package."""
    import logging  # seldom needed, and slow to import

    logging.getLogger("transect").warning("%s", text)
