"""What the archive of InSight's arm offers, by name."""

from __future__ import annotations

from transect.base.plugins import Plugin

_HERE = "transect.datasets.insight"

plugin = Plugin(
    name="insight",
    archives={"ida": f"{_HERE}.archive.profile"},
    formats={"ida": f"{_HERE}.products", "ccsds": f"{_HERE}.packets"},
    robots={"ida": f"{_HERE}:ida.yaml"},
    tables={"arm": f"{_HERE}.arm_table:command", "faults": f"{_HERE}.faults_table:command"},
    worlds={"insight": f"{_HERE}.world"},
)
