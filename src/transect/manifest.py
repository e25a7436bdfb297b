"""What transect itself offers, by name; nothing is imported before it is used (see `base/plugins.py`).

Formats, tables and commands are the modules of their packages; nodes and checks are listed here.
"""

from __future__ import annotations

from transect.base.plugins import Plugin, list_files, list_modules

_FAULTS = "transect.simulation.faults"
_FORMATS = "transect.formats"
_NO_FORMATS = ("recognition", "shared", "truth")
# Single modules, which need numpy; `recognition` knows their files without importing them.
_LAZY_FORMATS = (
    *("csv", "euroc", "folder", "geojson", "geotiff", "gpx"),
    *("gtsam_points", "kml", "parquet", "pcd", "tum", "video"),
)

# Nodes by module; those of `transect.nodes`
_NODES = {
    "calibration": ("CameraCalibration", "LaserCameraCalibration", "StereoCalibration"),
    "cloud.dem_building": ("DemBuilding",),
    "cloud.driven_ground": ("DrivenGround",),
    "cloud.features_3d": ("FeaturesDescription3D", "FeaturesExtraction3D"),
    "cloud.point_cloud_assembly": ("PointCloudAssembly",),
    "cloud.point_cloud_conversion": (
        "LaserScanToPointCloud",
        "PointCloudTransformation",
        "PointCloudVoxelization",
        "Voxelization",
    ),
    "cloud.point_cloud_filtering": ("MovingTargetSuppression", "PointCloudFiltering"),
    "features.bundle_adjustment": ("BundleAdjustment",),
    "features.features_2d": ("FeaturesDescription2D", "FeaturesExtraction2D"),
    "features.matching_2d": ("FeaturesMatching2D", "FeaturesTracking2D"),
    "features.pose_estimation": ("PerspectiveNPointSolving", "Transform3DEstimation"),
    "features.two_views": (
        "CamerasTransformEstimation",
        "FundamentalMatrixComputation",
        "PointCloudReconstruction2DTo3D",
    ),
    "image.image_filtering": ("ColorConversion", "DepthFiltering", "ImageFiltering"),
    "image.rectification": ("ImageRectification", "StereoPairing", "StereoRectification", "StereoSplitting"),
    "lidar.channel_calibration": ("ChannelCalibration",),
    "lidar.laser_assembly": ("LaserAssembly",),
    "lidar.scan_deskewing": ("ScanDeskewing",),
    "lidar.scan_odometry": ("ScanOdometry",),
    "lidar.scan_placement": ("ScanPlacement",),
    "maps": ("MapAlignment", "MapGeoreferencing", "MapLocalisation"),
    "registration": ("FeaturesMatching3D", "Registration3D"),
    "slam.laser_pose_graph": ("LaserPoseGraph",),
    "slam.lidar_pose_graph": ("LidarPoseGraph",),
    "slam.stereo_slam": ("StereoSlam",),
    "state.batch_smoother": ("BatchSmoother",),
    "state.error_state_filter": ("ErrorStateFilter",),
    "state.fixed_lag_smoother": ("FixedLagSmoother",),
    "state.gnss_pose": ("GnssPose",),
    "state.imu_attitude": ("ImuAttitude",),
    "state.kf_correction": ("KFCorrection",),
    "state.kf_prediction": ("KFPrediction",),
    "state.local_pose": ("LocalPose",),
    "state.mono_odometry": ("MonoOdometry",),
    "state.odometry_pose": ("OdometryPose",),
    "state.pose_drift": ("PoseDrift",),
    "state.pose_fusion": ("PoseFusion",),
    "state.pose_switch": ("PoseSwitch",),
    "state.pose_weighting": ("PoseWeighting",),
    "state.side_wheels": ("SideWheels",),
    "state.wheel_odometry": ("WheelOdometry",),
    "stereo.scene_points": (
        "SceneCloud",
        "SceneFeatures",
        "SceneKeypoints",
        "SceneLandmarks",
        "SceneModel",
        "SceneSightings",
        "SceneSurface",
    ),
    "stereo.scene_poses": ("SceneEyes", "ScenePick", "ScenePose", "SceneWindow"),
    "stereo.stereo_odometry": ("StereoOdometry",),
    "stereo.stereo_offset_calibration": ("StereoOffsetCalibration",),
    "stereo.stereo_reconstruction": (
        "DisparityImage",
        "DisparityToPointCloud",
        "DisparityToPointCloudWithIntensity",
        "StereoReconstruction",
    ),
}
# Checks by the names that configurations and `--check` take
_CHECKS = {
    "coverage": "missing_samples:StreamCoverage",  # T01
    "gap": "missing_samples:SampleGap",  # T02
    "rate": "sample_rate:Rate",  # T03
    "jitter": "sample_rate:Jitter",  # T04
    "order": "timestamps:StampOrder",  # T05
    "clock_jump": "clocks:ClockJump",  # T06
    "clock_drift": "clocks:ClockDrift",  # T07
    "latency": "latency:Latency",  # T08
    "metadata_time": "timestamps:MetadataTime",  # T09
    "stuck": "stuck:Stuck",  # S01
    "saturation": "saturation:Saturation",  # S02
    "spike": "spike:Spike",  # S03
    "invalid": "implausible_values:Invalid",  # S04
    "noise": "noise:Noise",  # S05
    "unit": "implausible_values:UnitSanity",  # S06
    "coordinates": "implausible_values:ImplausibleCoordinates",  # S07
    "early_returns": "dust_smoke_rain:EarlyReturns",  # C01
    "obscurant": "dust_smoke_rain:Obscurant",  # C02
    "rain": "dust_smoke_rain:Rain",  # C03
    "airborne": "dust_smoke_rain:Airborne",  # C04
    "blockage": "blockage:Blockage",  # C05
    "radar": "radar:RadarStrength",  # C06
    "blur": "image_quality:Blur",  # C07
    "exposure": "image_quality:Exposure",  # C08
    "colour_line": "image_haze:ColourLine",  # C09
    "haze": "image_haze:Haze",  # C10
    "frozen_image": "image_quality:FrozenImage",  # C11
    "laser_radar": "dust_smoke_rain:LaserRadar",  # X01
    "visual_infrared": "image_haze:VisualInfrared",  # X02
    "laser_laser": "laser_laser:LaserLaser",  # X03
    "extrinsic_drift": "sensor_mounting:ExtrinsicDrift",  # X04
    "slip": "slip:WheelSlip",  # X05
    "redundancy": "redundancy:Redundancy",  # X06
    "axes": "sensor_mounting:Axes",  # X07
    "copies": "copies:Copies",  # X08
    "sides": "stereo_pair:Sides",  # X09
    "lever_arm": "lever_arm:LeverArm",  # X10
    "nis": "nis:Nis",  # E01
    "covariance": "declared_covariance:Covariance",  # E02
    "gnss": "gnss:Gnss",  # E03
    "inert_gate": "declared_covariance:InertGate",  # E04
    "vision_chain": "stereo_pair:VisionChain",  # E05
}

_METRICS = {
    **dict.fromkeys(("DriftPercent", "MapError", "PositionError", "TrajectoryError"), "trajectories"),
    **dict.fromkeys(("Matchability", "MatchRatio", "PnpInliers", "TriangulationCovariance"), "vision"),
}

plugin = Plugin(
    name="transect",
    checks={name: f"transect.integrity.checks.{at}" for name, at in _CHECKS.items()},
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
    nodes={
        **{name: f"transect.nodes.{at}:{name}" for at, names in _NODES.items() for name in names},
        **{name: f"transect.evaluation.nodes.{at}:{name}" for name, at in _METRICS.items()},
    },
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
