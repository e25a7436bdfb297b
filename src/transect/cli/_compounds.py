"""Compounds and parameters as a person names them: `Name/Implementation`, `--set NODE.PARAM=VALUE`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.errors import UsageError

from ._options import parse_pairs

if TYPE_CHECKING:
    from transect.engine import Compound

EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")
"""Numbers that YAML 1.1 takes for text: 1e-3."""


def find_compound(spec: str) -> Compound:
    """Return the compound that is meant."""
    from transect.engine import Compound

    if Path(spec).is_dir():
        raise UsageError(
            f"{spec} is a folder, not a compound", hint="transect run COMPOUND PATH..., in this order"
        )
    return Compound.of(spec)


def find_description(spec: Path) -> tuple[Path, str]:
    """Return the file of a description and the implementation: a file, `Name` or `Name/Implementation`."""
    if spec.exists() or spec.suffix:
        return spec, ""
    found = find_compound(str(spec))
    return Path(found.text.file), found.implementation


def parse_settings(given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what `--set node.param=value` says; values are read as YAML: 0.3, true, [1, 2], text."""
    from transect.engine.run import settings_from

    texts = parse_pairs(given, "--set", "icp.max_distance=0.3")
    return settings_from({name: _parse_value(name, text) for name, text in texts.items()})


def _parse_value(name: str, text: str) -> Any:
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
