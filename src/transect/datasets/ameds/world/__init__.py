"""Mount Etna: ESA's rover Interact drives around the lander, recorded as in AMEDS (document 000).

Every stream of Table 7 at its documented rate, but for MainAuxCam/Projected: its images are drawings over
others. Samples are stamped when they are taken; only Gnss/Pose is logged 1 to 4 ms later.

Conditions
----------
rtk : {"yes", "no", "gaps"}
    Table 6 has traverses with and without. With gaps: float, single and no fix, from 8 to 17 s.
soil : {"loose", "firm"}
    Wheels slip with the slope, or not at all.
light : {"day", "low_sun", "night", "night_with_lights"}
depth : {"off", "on"}
    Truth gets the depth of every image.
task : {"traverse", "rock_picking"}
    The rover stands and AuxArm puts a rock into the container (section 5.2, where it takes 105 and 141 s).
lidar : {"ideal", "measured"}
    Every beam that meets something comes back; or only what is bright enough, and channels have biases.
route : {"lap", "return", "far"}
    Around the lander again and again; or out past it, back over the same ground, and out again: 33 m of
    way, or 268 m.
track : {"first", "again", "beside"}
    Of the first drive; of another day on the same ground, with other noise; or the same 1.5 m to the left.

A smaller `scale` makes smaller images and, in the same measure, thinner clouds. AMEDS has no place for the
intrinsics: its reader scales those of full size to the images.
"""

from __future__ import annotations

import pyarrow as pa

from transect.base.arrays import Ints
from transect.recording import Recording, arrow
from transect.simulation import driving
from transect.simulation.day import Day, Options, Truth

from ..robot.arms import frame_tree
from . import streams
from .state import State


def make_day(options: Options) -> Day:
    """Return a day on Etna."""
    state = State(options)
    recording = _make_recording(state)
    return Day(recording.select(*options.streams) if options.streams else recording, _make_truth(state))


def _make_recording(state: State) -> Recording:
    made = (*streams.make_tables(state), *streams.make_views(state))
    options, robot = state.options, state.rover.robot
    return Recording(
        name=f"etna-{options.seed}",
        streams=made,
        frames=frame_tree(robot, made),
        cameras=streams.make_cameras(state),
        robot=robot,
        conditions={"simulated": True, "seed": options.seed, "scale": options.scale, **state.conditions},
        format="ameds",
    )


def _make_truth(state: State) -> Truth:
    motion = driving.truth(state.motion)
    t_ns = state.times(streams.MOTORS)
    units = {"slip_angle": "rad", "rim": "m/s", "ground": "m/s", "sliding": "m/s", "steering": "rad"}
    touched = {"x": "m", "y": "m", "z": "m", "load": "N"}
    return Truth(
        motion=motion,
        tables={
            **_make_picking(state, motion.t_ns),
            "slip": arrow.table(t_ns, streams.make_slip_columns(state, t_ns), units=units),
            "contact": arrow.table(t_ns, streams.make_contact_columns(state, t_ns), units=touched),
        },
        maps={"dem": state.land.as_grid()},
        files=streams.make_depth_files(state) if state.conditions["depth"] == "on" else {},
        origin=state.rover.origin,
        body="Platform",
    )


def _make_picking(state: State, t_ns: Ints) -> dict[str, pa.Table]:
    """Return the true angles of AuxArm, and where the rock is and whether it is held; none on a traverse."""
    if state.picking is None:
        return {}
    seconds = streams.count_seconds(t_ns)
    place = dict(zip("xyz", state.picking.rocks(seconds).T, strict=True))
    units = {**dict.fromkeys("xyz", "m"), "position": "rad"}
    columns = {"position": state.picking.joints(seconds), **place, "held": state.picking.held(seconds)}
    return {"picking": arrow.table(t_ns, columns, units=units)}
