"""What `transect run` is asked, read and checked before anything is opened."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.errors import TimeError, UsageError

from ._asked import key_values

if TYPE_CHECKING:
    from transect.engine import Compound

EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")
"""Numbers that YAML 1.1 takes for text: 1e-3."""


def compound(spec: str) -> Compound:
    """Return the compound that is meant."""
    from transect.engine import Compound

    if Path(spec).is_dir():
        raise UsageError(
            f"{spec} is a folder, not a compound", hint="transect run COMPOUND PATH..., in this order"
        )
    return Compound.of(spec)


def description(spec: Path) -> tuple[Path, str]:
    """Return the file of a description and the implementation: a file, `Name` or `Name/Implementation`."""
    if spec.exists() or spec.suffix:
        return spec, ""
    found = compound(str(spec))
    return Path(found.text.file), found.implementation


def settings(given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what `--set node.param=value` says; values are read as YAML: 0.3, true, [1, 2], text."""
    from transect.engine.run import settings_from

    texts = key_values(given, "--set", "icp.max_distance=0.3")
    return settings_from({name: _value(name, text) for name, text in texts.items()})


def _value(name: str, text: str) -> Any:
    import yaml

    if EXPONENT.fullmatch(text.strip()):
        return float(text)
    try:
        read = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(
            f"--set {name}={text} cannot be read",
            why=getattr(error, "problem", None) or str(error),
            hint="0.3, true, [1, 2], or text; quote what has brackets or colons",
        ) from error
    return "" if read is None and not text.strip() else read


def wires(given: Sequence[str]) -> dict[str, str]:
    """Return what `--wire INPUT=STREAM` says."""
    return key_values(given, "--wire", "left=Cam0")


@contextmanager
def usage() -> Generator[None]:
    """Take times and clocks that do not go with the recording for what they are: asked for by mistake."""
    try:
        yield
    except TimeError as error:
        raise UsageError(error.what, where=error.where, why=error.why, hint=error.hint) from error
