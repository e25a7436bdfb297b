"""What transect itself offers, by name; nothing is imported before it is used (see `base/plugins.py`).

Formats, checks, tables and commands are the modules of their packages; nodes are listed beside them.
"""

from __future__ import annotations

from transect.base.plugins import Plugin, list_files, list_modules
from transect.integrity.checks import CHECKS
from transect.nodes import NODES

_FAULTS = "transect.simulation.faults"
_FORMATS = "transect.formats"
_NO_FORMATS = ("recognition", "shared", "truth")
# Single modules, which need numpy; `recognition` knows their files without importing them.
_LAZY_FORMATS = (
    *("csv", "euroc", "folder", "geojson", "geotiff", "gpx"),
    *("gtsam_points", "kml", "parquet", "pcd", "tum", "video"),
)

_METRICS = {
    **dict.fromkeys(("DriftPercent", "MapError", "PositionError", "TrajectoryError"), "trajectories"),
    **dict.fromkeys(("Matchability", "MatchRatio", "PnpInliers", "TriangulationCovariance"), "vision"),
}

plugin = Plugin(
    name="transect",
    checks=CHECKS,
    commands=list_modules("transect.cli", "command", without="shared"),
    compounds={
        stem.title().replace("_", ""): file
        for stem, file in list_files("transect.compounds", ".yaml").items()
    },
    drawings={
        "frames": "transect.cli.draw.recording:draw_frames",
        "moment": "transect.cli.draw.samples:draw_moment",
        "overlay": "transect.cli.draw.samples:draw_overlay",
        "robot": "transect.cli.draw.recording:draw_robot",
        "streams": "transect.cli.draw.recording:draw_streams",
        "track": "transect.cli.draw.track:command",
    },
    faults={  # in the order of `transect inject`
        "obscurants": f"{_FAULTS}.obscurants:FAULTS",
        "rain": f"{_FAULTS}.rain:FAULTS",
        "veils": f"{_FAULTS}.pictures:VEIL_FAULTS",
        "timing": f"{_FAULTS}.timing:FAULTS",
        "order": f"{_FAULTS}.timing:ORDER_FAULTS",
        "signals": f"{_FAULTS}.signals:FAULTS",
        "spikes": f"{_FAULTS}.signals:SPIKE_FAULTS",
        "occlusion": f"{_FAULTS}.beams:FAULTS",
        "extrinsic": f"{_FAULTS}.calibration:EXTRINSIC_FAULTS",
        "wheels": f"{_FAULTS}.signals:WHEEL_FAULTS",
        "gnss": f"{_FAULTS}.signals:GNSS_FAULTS",
        "joints": f"{_FAULTS}.signals:JOINT_FAULTS",
        "covariances": f"{_FAULTS}.calibration:COVARIANCE_FAULTS",
        "descriptions": f"{_FAULTS}.descriptions:FAULTS",
        "pictures": f"{_FAULTS}.pictures:FAULTS",
        "damage": f"{_FAULTS}.pictures:DAMAGE_FAULTS",
    },
    formats={
        **{
            name: at
            for name, at in list_modules(_FORMATS).items()
            if name not in ("recognition", "shared", "truth")
        },
        **{name: f"{_FORMATS}.recognition:{name}" for name in _LAZY_FORMATS},
    },
    judges={"checks": "transect.integrity.verdict_sources:choose_source"},
    limits=list_files("transect.integrity.robots", ".yaml"),
    nodes={**NODES, **{name: f"transect.evaluation.nodes.{at}:{name}" for name, at in _METRICS.items()}},
    aliases={"mp4": "video", "rosbag2": "rosbag", "foxglove": "mcap"},
    suffixes={
        ".bag": "rosbag",
        ".db3": "rosbag",
        ".mcap": "rosbag",
        ".tif": "geotiff",
        ".nmea": "nmea",
        ".tum": "tum",
        ".gpx": "gpx",
        ".kml": "kml",
        ".geojson": "geojson",
        ".mp4": "video",
    },
    tables=list_modules("transect.cli.table", "command"),
)
