"""Meaning of column names. Uses only the standard library, because recognition needs it."""

from __future__ import annotations

import re

from transect.base.units import is_unit

_NAME_UNIT = re.compile(r"(.*?)\s*[\[(]([^\[\]()]*)[\])]\s*")
_MEANINGS = tuple(
    (re.compile(pattern.replace("AXIS", "(x|y|z)")), name)
    for pattern, name in (
        (r"(?:lin(?:ear)?)?(?:acc(?:el(?:eration|erometer)?)?|a)AXIS", "acc_{}"),
        (r"(?:gyro(?:scope)?|ang(?:ular)?(?:vel(?:ocity)?|rate)?|omega|w|g)AXIS", "gyro_{}"),
        (r"mag(?:netometer|neticfield)?AXIS", "mag_{}"),
        (r"lat(?:itude)?", "lat"),
        (r"lon(?:gitude|g)?", "lon"),
        (r"alt(?:itude)?|height|elevation", "alt"),
        (r"(?:pos(?:ition)?|p|t|translation)?AXIS", "{}"),
        (r"easting", "x"),
        (r"northing", "y"),
        (r"(?:q|quat(?:ernion)?|orientation)(x|y|z|w)", "q{}"),
        (r"(?:lin(?:ear)?)?(?:vel(?:ocity)?|v)AXIS", "v{}"),
        (r"temp(?:erature)?", "temperature"),
        (r"(roll|pitch|yaw)", "{}"),
        (r"theta", "yaw"),
        (r"heading", "heading"),
    )
)
_TIME = re.compile(
    r"(unix|utc|epoch|header|ros|gps)?(time|stamp|timestamp|t|sec|secs|seconds|epoch|millis|micros|nanos)(stamp)?(s|ms|us|ns)?"
)


def split_unit(name: str) -> tuple[str, str]:
    """Split `acc_x [m/s2]` into name and unit, "" without a known unit.

    The brackets may have other words, separated by a comma: `acc_x [m/s2, body]`.
    """
    match = _NAME_UNIT.fullmatch(name)
    words = [word.strip() for word in re.split("[,;]", match[2])] if match else []
    units = [word for word in words if is_unit(word)]
    return (match[1], units[0]) if match and len(units) == 1 else (name, "")


def split_titles(header: str, delimiters: str = ",;\t|") -> list[str]:
    """Return the titles in a header, not split at delimiters inside brackets."""
    outside = r"(?![^\[(]*[\])])"
    return [title.strip() for title in re.split(f"[{re.escape(delimiters)}]{outside}", header)]


ROS_TIME, ROS_STAMP = "time", "field.header.stamp"
"""Names of the times of receipt and of measurement in `rostopic echo -p`; the first has the prefix `%`."""
_ROS_FIELD = re.compile(r"field\.(?:\w+\.)*?((?:\w+\.)?\w+)")
_ROS_MOTION = re.compile(r"(linear|angular)\.([xyz])")


def meaning_of(name: str) -> str:
    """Return the canonical column for a name, such as `acc_x` for "Accel X"; "" without one.

    Fields of messages, as printed by `rostopic echo -p`, are identified by the last two words of their path.
    """
    if field := _ROS_FIELD.fullmatch(name):
        name = field[1]
        if motion := _ROS_MOTION.fullmatch(name):  # Twist; an Imu has velocity and acceleration
            return f"{'v' if motion[1] == 'linear' else 'w'}{motion[2]}"
    plain = re.sub(r"[^a-z0-9]", "", name.lower().removeprefix("imu").removeprefix("gps"))
    for pattern, meaning in _MEANINGS:
        if match := pattern.fullmatch(plain):
            return meaning.format(*match.groups())
    return ""


_SENSORS = (
    ("acc", re.compile(r"accel|(?<![a-z])acc(?![a-z])")),
    ("gyro", re.compile(r"gyro|angular|(?<![a-z])gyr(?![a-z])")),
    ("mag", re.compile(r"magnet|(?<![a-z])mag(?![a-z])")),
)


def sensor_of(title: str) -> str:
    """Return `acc`, `gyro` or `mag` if the name of a file or stream has exactly one of these, else ""."""
    plain = title.lower()
    found = [sensor for sensor, pattern in _SENSORS if pattern.search(plain)]
    return found[0] if len(found) == 1 else ""


def is_time_name(title: str) -> bool:
    """Return whether a column name is one of a time."""
    return _TIME.fullmatch(re.sub(r"[^a-z]", "", split_unit(title)[0].lower())) is not None
