"""Replay wheel odometry, joints and lidar of a rover: Code Sample 3 of the CDFF paper, rewritten.

``python 02_replay.py [FOLDER]`` writes to FOLDER, here by default. SherpaTT's logs are replaced by a
simulated rover on Mount Etna, its body joint by the arm that carries a camera; lines that begin with ``# >``
are the paper's.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import transect
from transect import Node, compound, outputs, param, robots
from transect.datasets.ameds.robot.arms import camera_poses
from transect.draw.figures import save_figure
from transect.draw.ground import GroundLayer
from transect.draw.tracks import PlottedTrack, TrackStyle, tracks_figure
from transect.engine import Batch, Latest
from transect.geometry import planar, rotations, se3
from transect.simulation.day import WorldOptions, simulate, write_day
from transect.types import JointState, Odometry, PointCloud, Pose, Trajectory

# > log_folder = "logs/20180927-1756_sherpa"
# > streams = [("sherpa_tt_mcs_Logger_InFuse.msg", ["/mcs_sensor_processing.rigid_body_state_out"]), ...
STREAMS = ("Platform/2DVelocity", "MainArm/JointAngles", "Lidar")


@outputs
class Moved:
    """What the transformer gives: in the frame odom, which is where the rover started."""

    camera: Pose
    cloud: PointCloud
    trajectory: Trajectory


class Transformer(Node):
    """Knows where everything on the rover is, by wheel odometry and the joints of its arm."""

    # > transformer.set_configuration_file("recording_sherpaTT_integration_tf.msg")
    robot: str = param("interact", doc="whose frames: a name, or a YAML file")

    def reset(self) -> None:
        self.pose, self.last = np.zeros(3), None
        self.times, self.poses = [], []

    def process(
        self, wheelOdometry: Batch[Odometry], bodyJoint: Latest[JointState], lidar: Latest[PointCloud]
    ) -> Moved | None:
        if not wheelOdometry:
            return self.ctx.skip("the rover says nothing")
        self.drive(wheelOdometry)
        frames = robots.load(self.robot).frames
        T_odom_origin = matrix(self.pose) @ frames.lookup("Platform", "Origin")
        T_odom_camera = T_odom_origin @ camera_poses(bodyJoint.position, robots.load(self.robot), "Main")
        T_odom_lidar = T_odom_origin @ frames.lookup("Origin", "Lidar")
        turn, place = se3.to_quaternion(T_odom_camera)
        points = se3.apply(T_odom_lidar, lidar.points).astype(np.float32)
        return Moved(Pose(place, turn, frame="odom", child="MainCam"), PointCloud(points, frame="odom"))

    def drive(self, news: Sequence[Odometry]) -> None:
        """Go on along the speeds that came since the last time."""
        samples = [self.last or news[0], *news]
        times = [sample.t_ns for sample in samples]
        rates = [[*sample.velocity[:2], sample.angular_velocity[2]] for sample in samples]
        path = planar.integrate(planar.motions_from_rates(times, rates), self.pose)
        self.times += times[1:]
        self.poses += list(path[1:])
        self.pose, self.last = path[-1], samples[-1]

    def finish(self) -> Moved:
        path = np.array(self.poses)
        places = np.column_stack([path[:, :2], np.zeros(len(path))])
        turns = rotations.quaternion_from_euler("Z", path[:, 2:])
        whole = Trajectory(np.array(self.times), places, turns, frame="odom", child="Platform")
        return Moved(trajectory=whole)


def matrix(pose: np.ndarray) -> np.ndarray:
    """T_odom_Platform (4, 4) of x, y and heading."""
    x, y, heading = pose
    return se3.from_quaternion(rotations.quaternion_from_euler("Z", [heading]), [x, y, 0.0])


def simulated(folder: Path) -> transect.Recording:
    if not folder.exists():
        write_day(simulate("etna", WorldOptions(seconds=6.0, scale=0.03, streams=STREAMS)), folder)
    # > log_iterator = replay_logfile_join(log_folder, streams)
    return transect.open(folder)


def main(folder: Path) -> None:
    rec = simulated(folder / "etna-replay")
    replay = compound(
        "Replay",
        # > dfc = dataflowcontrol.DataFlowControl(nodes={"transformer": transformer},
        {"transformer": Transformer},
        # > connections = (("/mcs_sensor_processing.rigid_body_state_out", "transformer.wheelOdometry"),
        # >                ("/body_joint.body_joint_samples", "transformer.bodyJoint"))
        [
            "odometry -> transformer.wheelOdometry",
            "joints -> transformer.bodyJoint",
            "lidar -> transformer.lidar",
            "transformer.camera -> camera",
            "transformer.cloud -> cloud",
            "transformer.trajectory -> odometryTrajectory",
        ],
        # > periods={"transformer": 1})
        every={"transformer": 1.0},
    )
    run = transect.run(replay, rec)  # streams find their inputs by type

    # > app = EnvireVisualizerApplication(frames={"/slam_filter.output": "velodyne",
    # >     "transformer.odometryTrajectory": "origin"}, center_frame="odometry")
    trajectory = run["odometryTrajectory"].values[-1]
    cameras = np.array([pose.position for pose in run["camera"].values])
    seen = np.concatenate([cloud.points for cloud in run["cloud"].values])
    picture = tracks_figure(
        [
            PlottedTrack("wheels", trajectory.positions[:, :2]),
            PlottedTrack("camera, every second", cameras[:, :2]),
        ],
        GroundLayer(seen[:, :2], kind="points"),
        style=TrackStyle(names=("ahead of the start", "left")),
    )
    save_figure(picture, folder / "replay.png")

    # > dfc.node_statistics_.print_statistics()
    print(run.stats)
    print(f"{trajectory.length:.2f} m driven, {len(cameras)} poses of the camera, {len(seen)} lidar points")

    true = rec.truth.array("x", "y", "z")
    driven = float(np.linalg.norm(np.diff(true, axis=0), axis=1).sum())
    assert 1.0 < trajectory.length / driven < 1.12, "wheels slip: they turn more than the rover moves"
    T_platform_camera = rec.frames.lookup("Platform", "MainCam", run["camera"].t_ns[0])
    np.testing.assert_allclose(cameras[0], T_platform_camera[:3, 3], atol=1e-3)
    assert len(cameras) == 7, "one each second, from the first sample to the last"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
