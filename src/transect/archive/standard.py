"""Which information model a label follows: the core and the dictionaries, by the names of their files.

The files themselves are no part of transect; see `transect archive schemas`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CORE = "http://pds.nasa.gov/pds4/pds/v1"
_HOME = "http://pds.nasa.gov/pds4/{prefix}/v1"
_SCHEMA = "https://pds.nasa.gov/pds4/{prefix}/v1/{name}"
_SCHEMATRON = "http://purl.oclc.org/dsdl/schematron"


def _recent() -> dict[str, str]:
    return {
        "disp": "PDS4_DISP_1O00_1510",
        "geom": "PDS4_GEOM_1O00_19B0",
        "msn": "PDS4_MSN_1O00_1310",
        "proc": "PDS4_PROC_1O00_1500",
    }


@dataclass(frozen=True)
class Standard:
    """A release of the information model."""

    version: str = "1.24.0.0"  # as labels say it: `1.24.0.0`
    core: str = "PDS4_PDS_1O00"  # name of the core's files, without suffix
    # by prefix, the names of the dictionaries' files, without suffix
    dictionaries: Mapping[str, str] = field(default_factory=_recent)

    @property
    def lists_authors(self) -> bool:
        """Whether authors are listed one by one; before, all stood in one text."""
        return self.core >= "PDS4_PDS_1M"

    def _files(self, prefixes: set[str]) -> list[tuple[str, str]]:
        used = [(prefix, self.dictionaries[prefix]) for prefix in sorted(prefixes)]
        return [("pds", self.core), *used]

    def instructions(self, prefixes: set[str]) -> list[str]:
        """Return what stands before a label that uses some dictionaries: where their rules are."""
        urls = [_SCHEMA.format(prefix=p, name=f"{name}.sch") for p, name in self._files(prefixes)]
        return [f'xml-model href="{url}" schematypens="{_SCHEMATRON}"' for url in urls]

    def attributes(self, prefixes: set[str]) -> tuple[tuple[str, str], ...]:
        """Return the namespaces of a label that uses some dictionaries, and where their schemas are."""
        files = self._files(prefixes)
        homes = {prefix: _HOME.format(prefix=prefix) for prefix, _ in files}
        places = [f"{homes[p]} {_SCHEMA.format(prefix=p, name=f'{name}.xsd')}" for p, name in files]
        return (
            ("xmlns", CORE),
            *((f"xmlns:{prefix}", home) for prefix, home in homes.items()),
            ("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance"),
            ("xsi:schemaLocation", " ".join(places)),
        )


RECENT_STANDARD = Standard()
"""What new bundles follow."""
INSIGHT_STANDARD = Standard("1.11.1.0", "PDS4_PDS_1B10", {"msn": "PDS4_MSN_1B00_1100"})
"""What the label in appendix E of the InSight SIS follows."""
