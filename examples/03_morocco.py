"""Wheel odometry against D-GPS over an elevation map: the Morocco experiment of the CDFF paper.

``python 03_morocco.py [FOLDER]`` writes to FOLDER, here by default: what the run gave, and `morocco.png`, a
picture like the paper's Figure 8. SherpaTT's logs are replaced by a simulated rover on Mount Etna, so the
truth is known, and so is what to expect: its wheels slip, mostly uphill.
"""

import sys
from pathlib import Path

import numpy as np

import transect
from transect import Node, compound, outputs, robots
from transect.datasets.ameds.robot.arms import lander_of
from transect.draw.figures import save_figure
from transect.draw.ground import GroundLayer
from transect.draw.tracks import PlottedTrack, TrackStyle, tracks_figure
from transect.engine import At
from transect.geometry import geodesy, planar
from transect.robots.four_wheel_steering import FourWheelGeometry, body_motion, steer_angles
from transect.simulation.day import WorldOptions, simulate, write_day
from transect.types import NavFix, WheelState

INTERACT = robots.load("interact")
GEOMETRY = FourWheelGeometry.of(INTERACT)
LANDER = lander_of(INTERACT)
RECEIVER = INTERACT.frames.lookup("Platform", "Origin")[:2, 3]  # m, forward and left
TRACKS = {"by_wheels": "wheel odometry", "by_gps": "D-GPS"}
MIN_SLIP, MAX_SLIP = 0.01, 0.12  # loose soil: 3 % on the level, and half of the slope in addition


class WheelOdometry(Node):
    """x, y (m) and heading (rad) of the rover by its four wheels, from where it started."""

    def reset(self) -> None:
        self.pose, self.before = np.zeros(3), None

    def process(self, wheels: WheelState) -> np.ndarray:
        now = self.ctx.time, wheels.velocity, steer_angles(wheels.steer_ticks, GEOMETRY)
        if self.before is not None:
            (t0, v0, s0), (t1, v1, s1) = self.before, now
            travel = (v0 + v1) / 2 * (t1 - t0) / 1e9
            motion = body_motion(travel, (s0 + s1) / 2, GEOMETRY, s1 - s0).motion
            self.pose = planar.integrate(motion[None], self.pose)[-1]
        self.before = now
        return self.pose


class Dgps(Node):
    """East, north (m) from the lander, and the heading (rad, from east to north) of the receiver."""

    def process(self, fix: NavFix) -> np.ndarray:
        place = [fix.latitude, fix.longitude, fix.altitude]
        east, north, _ = geodesy.local_from_geodetic(place, LANDER, "ENU")
        return np.array([east, north, np.pi / 2 - fix.attitude[2]])


@outputs
class Compared:
    """Both tracks of the receiver in metres east and north, how far they are apart, how far it drove."""

    by_wheels: np.ndarray
    by_gps: np.ndarray
    error: float
    travelled: float


class Compare(Node):
    """The paper's "simple DFN implemented in Python", which compares both position estimates."""

    def reset(self) -> None:
        self.start, self.last, self.travelled, self.told = None, None, 0.0, 0

    def process(self, dgps: np.ndarray, odometry: At[np.ndarray]) -> Compared:
        here = odometry[:2] + planar.rotations_from_headings(odometry[2]) @ RECEIVER
        if self.start is None:  # the odometry begins where, and as, the receiver stands
            self.turn = planar.rotations_from_headings(dgps[2] - odometry[2])
            self.start, self.last = dgps[:2] - self.turn @ here, here
        self.travelled += float(np.hypot(*(here - self.last)))
        self.last = here
        by_wheels = self.turn @ here + self.start
        error = float(np.hypot(*(by_wheels - dgps[:2])))
        if self.travelled >= self.told:
            self.ctx.log(f"{error:.3f} m apart after {self.travelled:.1f} m")
            self.told += 5
        return Compared(by_wheels, dgps[:2], error, self.travelled)


def morocco() -> "transect.engine.Compound":
    return compound(
        "Morocco",
        {"odometry": WheelOdometry, "dgps": Dgps, "compare": Compare},
        [
            "wheels -> odometry.wheels",
            "fix -> dgps.fix",
            "odometry.out -> compare.odometry",
            "dgps.out -> compare.dgps",
            *(f"compare.{name} -> {name}" for name in ("by_wheels", "by_gps", "error", "travelled")),
        ],
    )


def simulated(folder: Path) -> transect.Recording:
    """A minute on Etna: wheels and receiver only, and what was true beside them."""
    streams = ("Platform/MotorEncoders", "Gnss/Pose")
    if not folder.exists():
        write_day(simulate("etna", WorldOptions(seconds=60.0, streams=streams)), folder)
    return transect.open(folder)


def elevation(rec: transect.Recording) -> GroundLayer:
    """The ground truth map, as a drone would have measured it (a GeoTIFF)."""
    grid = rec["truth/dem"].at(0).payload
    return GroundLayer(grid.layers["elevation"], grid.transform, cycle=1.0)


def main(folder: Path) -> None:
    rec = simulated(folder / "etna")
    run = transect.run(morocco(), rec)
    for t_ns, node, text in run.log:
        print(f"{(t_ns - rec['Gnss/Pose'].t_ns[0]) / 1e9:5.1f} s  {node}: {text}")
    print(run.stats)

    error, travelled = (np.array(run[name].values) for name in ("error", "travelled"))
    print(f"{error[-1]:.2f} m off after {travelled[-1]:.1f} m: {error[-1] / travelled[-1]:.1%}")
    quarters = [part.mean() for part in np.array_split(error, 4)]
    assert quarters == sorted(quarters), "the error of dead reckoning grows with the way"
    assert MIN_SLIP < error[-1] / travelled[-1] < MAX_SLIP

    tracks = [PlottedTrack(name, np.array(run[port].values)) for port, name in TRACKS.items()]
    title = "Wheel odometry against D-GPS on (simulated) Etna"
    picture = tracks_figure(
        tracks, elevation(rec), style=TrackStyle(title, names=("east", "north"), north=True)
    )
    save_figure(picture, folder / "morocco.png")
    print(f"wrote {folder / 'morocco.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
