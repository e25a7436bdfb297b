"""PoseFusion without configuration, on a simulated day."""

from __future__ import annotations

import numpy as np
import pytest

from transect import run
from transect.engine import Compound
from transect.errors import TransectError
from transect.evaluation.clouds import ground_distances
from transect.geometry import geodesy, rotations
from transect.recording import Recording
from transect.simulation.day import Day, WorldOptions, simulate

WITH_FIXES = ("Platform/MotorEncoders", "Gnss/Imu", "Gnss/Pose")
SPEC = "PoseFusion/ErrorStateFilter"


@pytest.fixture(scope="module")
def simulated() -> Day:
    return simulate("etna", WorldOptions(seconds=6.0, streams=WITH_FIXES))


@pytest.fixture(scope="module")
def day(simulated: Day) -> Recording:
    return simulated.recording


@pytest.fixture(scope="module")
def fused(day: Recording):
    return run(SPEC, day)


def test_streams_are_wired_by_their_types(fused):
    wired = {name: each["stream"] for name, each in fused.config["wiring"].items()}
    assert wired == {"wheels": WITH_FIXES[0], "imu": WITH_FIXES[1], "fix": WITH_FIXES[2]}


def test_poses_are_those_of_the_platform_in_the_map(fused, day: Recording):
    pose = fused["pose"].values[-1]
    assert (pose.frame, pose.child) == ("map", "Platform")
    started = fused["success"].values
    assert started[-1]
    assert len(fused["pose"].values) == sum(started)


def test_rtk_fixes_keep_the_pose_within_centimetres_of_the_antenna(fused, day: Recording):
    """The receiver is at Origin, 81 mm over Platform (AMEDS, Table 2); RTK has 8 mm."""
    fixes = day["Gnss/Pose"].array("lat", "lon", "alt")
    places = geodesy.local_from_geodetic(fixes, fixes[0])
    lever = day.frames.lookup("Platform", "Origin")[:3, 3]
    t_ns = day["Gnss/Pose"].t_ns
    found = fused["pose"]
    off = [
        np.linalg.norm(p.position + rotations.rotate(p.orientation, lever) - places[np.searchsorted(t_ns, t)])
        for t, p in zip(found.t_ns, found.values, strict=True)
    ]
    assert np.sqrt(np.mean(np.square(off))) < 0.03


def test_the_wheels_touched_the_true_ground(fused, simulated: Day):
    """Wheels do not feel roughness below 25 cm, and heights follow fixes of 15 mm: centimetres are left."""
    (ground,) = fused["ground"].values
    truth, fixes = simulated.truth, simulated.recording["Gnss/Pose"].array("lat", "lon", "alt")
    assert truth.motion is not None
    origin = geodesy.local_from_geodetic(fixes[0], truth.origin)  # the map begins at the first fix
    off = ground_distances(ground.points + origin, truth.maps["dem"])
    assert np.sqrt(np.mean(off**2)) < 0.03
    travelled = np.linalg.norm(np.diff(truth.motion.position, axis=0), axis=1).sum()
    assert len(ground) == pytest.approx(4 * travelled / 0.05, rel=0.25)
    assert (ground.fields["sigma"] < 0.04).all()


@pytest.mark.parametrize(
    "compound", Compound.of("PoseFusion").candidates(), ids=lambda each: each.implementation
)
def test_every_implementation_gives_the_ground(compound: Compound):
    if "Smoother" in compound.implementation:
        pytest.importorskip("gtsam")
    if "Lidar" in compound.implementation:
        pytest.importorskip("small_gicp")
    assert compound.graph().outputs["ground"] == "ground.ground"


def test_the_same_day_gives_the_same_digest(fused, day: Recording):
    assert run(SPEC, day).digest == fused.digest


def test_without_wheels_there_is_nothing_to_correct(day: Recording):
    with pytest.raises(TransectError, match="without a dead reckoning"):
        run(SPEC, day.select("Gnss/Imu"))
