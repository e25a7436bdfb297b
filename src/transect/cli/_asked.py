"""What a person asked for, checked before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transect.base.files import refuse_existing
from transect.errors import UsageError


def new_folder(out: Path | None) -> Path:
    """Return the folder to write, if one is named and nothing stands there."""
    if out is None:
        raise UsageError("there is no place to write to", hint="-o DIR names a new folder")
    refuse_existing(out, hint="choose another name with -o")
    return out


def key_values(given: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Return what an option that may be repeated says as KEY=VALUE."""
    for text in given:
        if "=" not in text:
            raise UsageError(f"{option} {text!r} is not KEY=VALUE", hint=f"{option} {example}")
    return {key: value for key, _, value in (text.partition("=") for text in given)}
