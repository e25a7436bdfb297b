"""Mount Etna: ESA's rover Interact drives around the lander, recorded as in AMEDS.

All streams of Table 7 at their documented rates, except MainAuxCam/Projected, which has drawings over other
images. Samples are stamped when they are measured; only Gnss/Pose is logged 1 to 4 ms later.

Conditions
----------
rtk : {"yes", "no", "gaps"}
    Table 6 has traverses with and without RTK. With gaps: float, single and no fix, from 8 to 17 s.
soil : {"loose", "firm"}
    Wheels slip depending on the slope, or do not slip.
light : {"day", "low_sun", "night", "night_with_lights"}
depth : {"off", "on"}
    The ground truth contains the depth of every image.
task : {"traverse", "rock_picking"}
    In a rock picking, the rover stands and AuxArm puts a rock into the container (5.2: 105 and 141 s).
lidar : {"ideal", "measured"}
    All beams have returns; or only sufficiently bright ones, and channels have biases.
route : {"lap", "return", "far"}
    Laps around the lander; or there and back over the same ground, repeatedly: 33 m or 268 m one way.
track : {"first", "again", "beside"}
    The first drive; the same track on another day, with other noise; or 1.5 m to the left of it.

A smaller `scale` gives smaller images and, in proportion, sparser clouds. AMEDS does not contain intrinsics:
its reader scales those of the full size to the images.
"""

from __future__ import annotations

import pyarrow as pa

from transect.base.arrays import Ints
from transect.recording import Recording, arrow
from transect.simulation import driving
from transect.simulation.day import Day, Truth, WorldOptions

from ..robot.arms import frame_tree
from . import streams
from .state import EtnaState


def make_day(options: WorldOptions) -> Day:
    """Simulate a day on Etna."""
    state = EtnaState(options)
    recording = _make_recording(state)
    return Day(recording.select(*options.streams) if options.streams else recording, _make_truth(state))


def _make_recording(state: EtnaState) -> Recording:
    made = (*streams.make_tables(state), *streams.make_payload_streams(state))
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


def _make_truth(state: EtnaState) -> Truth:
    motion = driving.truth(state.motion)
    t_ns = state.times(streams.RATES.motors_hz)
    units = {"slip_angle": "rad", "rim": "m/s", "ground": "m/s", "sliding": "m/s", "steering": "rad"}
    contact_units = {"x": "m", "y": "m", "z": "m", "load": "N"}
    return Truth(
        motion=motion,
        tables={
            **_make_picking(state, motion.t_ns),
            "slip": arrow.table(t_ns, streams.make_slip_columns(state, t_ns), units=units),
            "contact": arrow.table(t_ns, streams.make_contact_columns(state, t_ns), units=contact_units),
        },
        maps={"dem": state.land.as_grid()},
        files=streams.make_depth_files(state) if state.conditions["depth"] == "on" else {},
        origin=state.rover.origin,
        body="Platform",
    )


def _make_picking(state: EtnaState, t_ns: Ints) -> dict[str, pa.Table]:
    """Return the true angles of AuxArm, the rock's position, and whether it is held; empty on a traverse."""
    if state.picking is None:
        return {}
    seconds = streams.count_seconds(t_ns)
    position = dict(zip("xyz", state.picking.rock_positions(seconds).T, strict=True))
    units = {**dict.fromkeys("xyz", "m"), "position": "rad"}
    columns = {"position": state.picking.joints(seconds), **position, "held": state.picking.is_held(seconds)}
    return {"picking": arrow.table(t_ns, columns, units=units)}
