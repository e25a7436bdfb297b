"""Plug-in of the ARCHES Mount Etna data set (AMEDS)."""

from __future__ import annotations

from transect.base.plugins import Plugin

_HERE = "transect.datasets.ameds"

plugin = Plugin(
    name="ameds",
    catalogues={"ameds": f"{_HERE}.catalogue"},
    drawings={"slip": f"{_HERE}.slip:drawing_command"},
    formats={"ameds": f"{_HERE}.folders"},
    robots={"interact": f"{_HERE}:interact.yaml"},
    tables={"slip": f"{_HERE}.slip:table_command"},
    worlds={"etna": f"{_HERE}.world"},
)
