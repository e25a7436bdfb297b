"""Plug-in of the Rosario data set."""

from __future__ import annotations

from transect.base.plugins import Plugin

_HERE = "transect.datasets.rosario"

plugin = Plugin(
    name="rosario",
    catalogues={"rosario": f"{_HERE}.catalogue"},
    formats={"rosario": f"{_HERE}.bags", "rosario_tracks": f"{_HERE}.tracks"},
    robots={"weeder": f"{_HERE}:weeder.yaml"},
    tables={"odometry": f"{_HERE}.odometry_table:command"},
    worlds={"rosario": f"{_HERE}.world"},
)
