"""Plug-in manifest of the InSight data set."""

from __future__ import annotations

from transect.base.plugins import Plugin

_HERE = "transect.datasets.insight"

plugin = Plugin(
    name="insight",
    archives={"ida": f"{_HERE}.archive.bundle"},
    formats={"ida": f"{_HERE}.products", "ccsds": f"{_HERE}.packets"},
    robots={"ida": f"{_HERE}:ida.yaml"},
    tables={"arm": f"{_HERE}.tables:arm_command", "faults": f"{_HERE}.tables:faults_command"},
    worlds={"insight": f"{_HERE}.world"},
)
