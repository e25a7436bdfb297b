"""Write the table of docs/dependencies.md: the packages needed at run time, their versions and licences."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "dependencies.md"
FIRST_TABLE = "| package | version |"
"""The page above this line is written by hand."""
NOT_IN_METADATA = {"saxonche": "MPL-2.0"}
"""Licences that the package's metadata leave out; SaxonC-HE: www.saxonica.com/license/license.xml."""
COPYLEFT = ("GPL", "MPL")


def page() -> str:
    """Return the page."""
    text = PAGE.read_text("utf-8").partition(FIRST_TABLE)[0]
    extras_of = runtime_packages()
    versions = constrained_versions()
    rows = [f"{FIRST_TABLE} licence | needed by |", "|---|---|---|---|"]
    rows += [
        f"| {name} | {versions[name]} | {licence_of(distribution(name))} | {', '.join(extras_of[name])} |"
        for name in sorted(extras_of)
    ]
    return text + "\n".join(rows) + "\n"


def runtime_packages() -> dict[str, list[str]]:
    """Return the installed packages that the core ("core") and each extra of `all` need, also indirectly."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    core = closure(project["dependencies"])
    found = {name: ["core"] for name in core}
    for extra in sorted(Requirement(optional["all"][0]).extras):
        for name in closure(optional[extra]) - core:
            found.setdefault(name, []).append(f"[{extra}]")
    return found


def closure(requirements: list[str]) -> set[str]:
    """Return the names of all packages that these requirements install on this machine."""
    needs = list(map(Requirement, requirements))
    names: set[str] = set()
    seen: set[tuple[str, str]] = set()
    while needs:
        need = needs.pop()
        name = canonicalize_name(need.name)
        for extra in ("", *need.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                names.add(name)
                listed = map(Requirement, installed(name).requires or [])
                needs += [each for each in listed if is_needed(each, extra)]
    return names


def installed(name: str) -> Distribution:
    """Return an installed package."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise SystemExit(f"{name} is not installed: run `make setup`") from None


def is_needed(need: Requirement, extra: str = "") -> bool:
    """Return whether a requirement applies on this machine, with one extra or none."""
    return need.marker is None or need.marker.evaluate({"extra": extra})


def constrained_versions() -> dict[str, str]:
    """Return the versions in constraints.txt that apply to this Python and platform."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    needs = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(need.name): str(need.specifier)[2:] for need in needs if is_needed(need)}


def licence_of(package: Distribution) -> str:
    """Return the licence that the metadata of a package states."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return expression
    name = canonicalize_name(metadata["Name"])
    classifiers = [
        line.rpartition("::")[2].strip()
        for line in metadata.get_all("Classifier", [])
        if line.startswith("License ::")
    ]
    text = (metadata.get("License") or "").strip()
    if text and "\n" not in text and len(text) < 40:  # some packages put the whole licence here
        return re.sub(r"\s+", " ", text)
    if classifiers:
        return ", ".join(classifiers)
    if name in NOT_IN_METADATA:
        return NOT_IN_METADATA[name]
    raise SystemExit(f"{name} states no licence: look it up and add it to NOT_IN_METADATA")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
