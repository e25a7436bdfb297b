"""The words that lines of a CARMEN log begin with, and how the scans among them are laid out."""

from __future__ import annotations

from dataclasses import dataclass

PLANAR = ("ODOM", "TRUEPOS")
POSES = ("x", "y", "theta", "odom_x", "odom_y", "odom_theta")
_ROBOT = ("tv", "rv", "forward_safety_dist", "side_safety_dist", "turn_axis")


@dataclass(frozen=True)
class Form:
    """How a scan is laid out.

    Attributes
    ----------
    head : tuple of str
        Columns between the word and the number of readings.
    tail : tuple of str
        Columns after the readings.
    remissions : bool
        Whether a number of remissions and these follow the readings.
    """

    head: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    remissions: bool = False


OLD = Form(tail=POSES)
_DEVICE = ("laser_type", "start_angle", "field_of_view", "angle_increment", "range_max", "accuracy")
RAW = Form((*_DEVICE, "remission_mode"), remissions=True)
ROBOT = Form(RAW.head, (*POSES, *_ROBOT), remissions=True)
LIMITS = {"FLASER": "robot_front_laser_max", "RLASER": "robot_rear_laser_max"}
"""The parameters that tell the largest range of scans of the old form, m."""
SCANS: dict[str, Form] = {
    **dict.fromkeys(("FLASER", "RLASER", "LASER3", "LASER4", "LASER5"), OLD),
    **{f"RAWLASER{n}": RAW for n in range(1, 6)},
    **{f"ROBOTLASER{n}": ROBOT for n in range(6)},
}
