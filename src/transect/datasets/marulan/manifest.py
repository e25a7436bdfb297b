"""Plug-in of the ACFR Sensor Data Integrity (SDI) data set."""

from __future__ import annotations

from transect.base.plugins import Plugin

_HERE = "transect.datasets.marulan"

plugin = Plugin(
    name="marulan",
    catalogues={"sdi": f"{_HERE}.catalogue"},
    drawings={"sdi": f"{_HERE}.sdi_drawing:command"},
    formats={"sdi": f"{_HERE}.logs"},
    limits={"argo": f"{_HERE}:limits.yaml"},
    robots={"argo": f"{_HERE}:argo.yaml"},
    worlds={"marulan": f"{_HERE}.world"},
)
