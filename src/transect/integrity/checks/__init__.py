"""The checks that come with transect, by name: the names that configurations and `--check` take."""

from __future__ import annotations

_HERE = "transect.integrity.checks"

CHECKS = {
    "coverage": f"{_HERE}.missing_samples:Coverage",  # T01
    "gap": f"{_HERE}.missing_samples:Gap",  # T02
    "rate": f"{_HERE}.sample_rate:Rate",  # T03
    "jitter": f"{_HERE}.sample_rate:Jitter",  # T04
    "order": f"{_HERE}.timestamps:Order",  # T05
    "clock_jump": f"{_HERE}.clocks:ClockJump",  # T06
    "clock_drift": f"{_HERE}.clocks:ClockDrift",  # T07
    "latency": f"{_HERE}.latency:Latency",  # T08
    "metadata_time": f"{_HERE}.timestamps:MetadataTime",  # T09
    "stuck": f"{_HERE}.stuck:Stuck",  # S01
    "saturation": f"{_HERE}.saturation:Saturation",  # S02
    "spike": f"{_HERE}.spike:Spike",  # S03
    "invalid": f"{_HERE}.implausible_values:Invalid",  # S04
    "noise": f"{_HERE}.noise:Noise",  # S05
    "unit": f"{_HERE}.implausible_values:UnitSanity",  # S06
    "coordinates": f"{_HERE}.implausible_values:Coordinates",  # S07
    "early_returns": f"{_HERE}.dust_smoke_rain:EarlyReturns",  # C01
    "obscurant": f"{_HERE}.dust_smoke_rain:Obscurant",  # C02
    "rain": f"{_HERE}.dust_smoke_rain:Rain",  # C03
    "airborne": f"{_HERE}.dust_smoke_rain:Airborne",  # C04
    "blockage": f"{_HERE}.blockage:Blockage",  # C05
    "radar": f"{_HERE}.radar:RadarStrength",  # C06
    "blur": f"{_HERE}.image_quality:Blur",  # C07
    "exposure": f"{_HERE}.image_quality:Exposure",  # C08
    "colour_line": f"{_HERE}.image_haze:ColourLine",  # C09
    "haze": f"{_HERE}.image_haze:Haze",  # C10
    "frozen_image": f"{_HERE}.image_quality:FrozenImage",  # C11
    "laser_radar": f"{_HERE}.dust_smoke_rain:LaserRadar",  # X01
    "visual_infrared": f"{_HERE}.image_haze:VisualInfrared",  # X02
    "laser_laser": f"{_HERE}.laser_laser:LaserLaser",  # X03
    "extrinsic_drift": f"{_HERE}.sensor_mounting:ExtrinsicDrift",  # X04
    "slip": f"{_HERE}.slip:Slip",  # X05
    "redundancy": f"{_HERE}.redundancy:Redundancy",  # X06
    "axes": f"{_HERE}.sensor_mounting:Axes",  # X07
    "copies": f"{_HERE}.copies:Copies",  # X08
    "sides": f"{_HERE}.stereo_pair:Sides",  # X09
    "lever_arm": f"{_HERE}.lever_arm:LeverArm",  # X10
    "nis": f"{_HERE}.nis:Nis",  # E01
    "covariance": f"{_HERE}.declared_covariance:Covariance",  # E02
    "gnss": f"{_HERE}.gnss:Gnss",  # E03
    "inert_gate": f"{_HERE}.declared_covariance:InertGate",  # E04
    "vision_chain": f"{_HERE}.stereo_pair:VisionChain",  # E05
}
