"""What this package offers to transect: names, and dotted strings that are imported when they are used."""

from transect.base.plugins import Plugin

plugin = Plugin(
    name="fieldkit",
    formats={"hauler": "fieldkit.log"},
    robots={"hauler": "fieldkit:hauler.yaml"},
    checks={"brownout": "fieldkit.brownout"},
    nodes={"Smoothing": "fieldkit.smoothing:Smoothing"},
    compounds={"SmoothMotion": "fieldkit:SmoothMotion.yaml"},
    tables={"hauler": "fieldkit.table:command"},
)
