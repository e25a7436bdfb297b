"""Plug-in manifest of the CDFF data set."""

from __future__ import annotations

from transect.base.plugins import Plugin

_HERE = "transect.datasets.cdff"

plugin = Plugin(
    name="cdff",
    aliases={"msgpack": "cdff_msgpack"},
    calibrations={"cdff": f"{_HERE}.calibration_dialects:DIALECTS"},
    formats={"cdff_msgpack": f"{_HERE}.msgpack", "pocolog": f"{_HERE}.pocolog"},
    suffixes={".msg": "cdff_msgpack"},
)
