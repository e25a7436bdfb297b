"""Every point cloud among the real data opens; the same scans as PCD and as PLY are equal point for point."""

from pathlib import Path

import numpy as np
import pytest
from tests.formats.recordings import assert_same, rewritten

import transect
from transect.formats.shared.clouds import decode_cloud
from transect.types import PointCloud

SIZES = {
    "lidar_fast_gicp": [69_088, 69_792],  # its SOURCE.txt
    "lidar_small_gicp": [69_792, 69_088],
    "pcl_terrain": [21_786, 38_010, 15_556, 28_862],  # POINTS of the headers
    "seeing_through_fog": [109_431],  # data/README.md: 109k points
}


def clouds_of(path: Path) -> list[PointCloud]:
    recording = transect.open(path)
    assert recording.losses == ()
    return [sample.value for stream in recording if stream.type is PointCloud for sample in stream]


@pytest.mark.parametrize("folder", SIZES)
def test_all_points_of_a_folder_are_there(real_data: Path, folder: str):
    assert [len(cloud) for cloud in clouds_of(real_data / folder)] == SIZES[folder]


def test_the_pcd_and_ply_twins_are_equal_point_for_point(real_data: Path):
    # lidar_fast_gicp/SOURCE.txt: 251371071.pcd == source.ply and 251370668.pcd == target.ply
    for pcd, ply in (("251371071.pcd", "source.ply"), ("251370668.pcd", "target.ply")):
        (a,) = clouds_of(real_data / "lidar_fast_gicp" / pcd)
        (b,) = clouds_of(real_data / "lidar_small_gicp" / ply)
        np.testing.assert_array_equal(a.points, b.points)
        np.testing.assert_array_equal(a.fields["intensity"], b.fields["intensity"])


def test_the_transform_beside_the_scans_is_a_frame_edge(real_data: Path):
    frames = transect.open(real_data / "lidar_small_gicp").frames
    # T_target_source.txt, row 1
    np.testing.assert_array_equal(
        frames.lookup("target", "source")[0], [0.999925, 0.0121483, -0.00177009, 0.488882]
    )


def test_libpointmatcher_clouds_open_with_and_without_header(real_data: Path):
    recording = transect.open(real_data / "lidar_libpointmatcher")
    with_header, blank_separated = (sample.value for sample in recording["data/car_cloud"])
    # lines of car_cloud400.csv without its header, and of car_cloud401.csv
    assert (len(with_header), len(blank_separated)) == (24_989, 25_193)
    np.testing.assert_array_equal(with_header.points[0], [-3.5376, 0.639553, -1.37678])
    np.testing.assert_array_equal(with_header.fields["normal"][0], [-0.060181, 0.173729, 0.982953])
    np.testing.assert_array_equal(blank_separated.points[0], [2.6247663, 5.2711742e-02, -1.0169336])
    planar = recording["data/2D_twoBoxes"][0].value
    assert len(planar) == 361
    assert not planar.points[:, 2].any()


def test_libpointmatcher_vtk_clouds_and_their_attributes_open(real_data: Path):
    recording = transect.open(real_data / "lidar_libpointmatcher")
    assert [len(s.value) for s in recording["data/cloud"]] == [24_989, 25_193, 24_154]
    trajectory = recording["data/trajectory"][0].value
    assert trajectory.fields["orientationX"].shape == (525, 3)
    axes = np.stack([trajectory.fields[f"orientation{a}"] for a in "XYZ"], axis=1)
    np.testing.assert_allclose(np.linalg.det(axes), 1.0, atol=1e-3)


def test_the_ground_truth_of_the_car_pair_is_a_truth_stream(real_data: Path):
    recording = transect.open(real_data / "lidar_libpointmatcher")
    truth = recording.truth
    assert truth is not None
    # carCloudList.csv: gT03 gT13 gT23 of the second cloud
    np.testing.assert_allclose(truth[1].value.position, [0.0614127, 0.191433, -0.0338571])
    assert truth.t_ns.tolist() == recording["data/car_cloud"].t_ns.tolist()


def test_gtsam_points_dumps_open_with_their_poses(real_data: Path):
    recording = transect.open(real_data / "lidar_gtsam_points")
    assert recording.losses == ()
    dump, graph = recording["kitti_07_dump/points"], recording["kitti_07_dump/graph"]
    assert len(dump) == len(graph) == 5
    np.testing.assert_allclose(graph[4].value.position, [3.84648, 27.7398, -0.110073])  # graph.txt, line 5
    assert dump[0].value.points.shape == (64_686 // 3, 3)  # bytes / 12
    assert recording["newer_01/edges"].t_ns.tolist() == recording["newer_01/graph"].t_ns.tolist()
    imu = recording["continuous/imu"]
    assert imu.t_ns[0] == 1647090478_710633039
    np.testing.assert_allclose(imu[0].value.acceleration, [-0.645305, -7.607906, 6.275951])
    assert len(recording["continuous/traj"]) == 2380


def test_written_gtsam_points_dumps_open_the_same(real_data: Path, tmp_path: Path):
    recording = transect.open(real_data / "lidar_gtsam_points")
    assert_same(recording, rewritten(recording, tmp_path / "again", "gtsam_points"))


def test_the_fog_scan_has_five_columns(real_data: Path):
    (cloud,) = clouds_of(real_data / "seeing_through_fog" / "2019-09-11_19-13-44_00960.bin")
    assert set(cloud.fields) == {"intensity", "ring"}
    assert set(np.unique(cloud.fields["ring"])) <= set(range(64))  # an HDL-64


def test_every_cloud_file_decodes(real_data: Path):
    files = [
        p for s in ("pcd", "ply", "vtk") for p in sorted(real_data.rglob(f"*.{s}")) if "pds4" not in p.parts
    ]
    assert len(files) >= 16
    for path in files:
        cloud = decode_cloud(path.read_bytes(), path.name)
        assert len(cloud) > 0, path
        assert np.isfinite(cloud.points).any(), path


def test_the_known_transform_pairs_have_the_same_number_of_points(real_data: Path):
    folder = real_data / "cdff_images_clouds"
    for a, b in (
        ("PointClouds/DevonIslandRoad1.ply", "PointClouds/DevonIslandRoad1TransformedNoise.ply"),
        ("cdff_dev_pointclouds/dense_original.ply", "cdff_dev_pointclouds/dense_transformed.ply"),
    ):
        assert len(clouds_of(folder / a)[0]) == len(clouds_of(folder / b)[0])
