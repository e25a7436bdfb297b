"""PoseFusion on bags of real robots: how far its innovations are what it expects."""

from __future__ import annotations

from pathlib import Path

import pytest

import transect


@pytest.mark.parametrize(
    ("bag", "until", "sensors"), [("test1", "+120s", ("fix", "odometry")), ("test2", "+20s", ("odometry",))]
)
def test_innovations_of_husky_and_jackal_are_as_large_as_expected(
    real_data: Path, bag: str, until: str, sensors: tuple[str, ...]
):
    """Noise follows the innovations: 90 to 99 % of the NIS are below the 95 % limit.

    The Husky's receiver falls by 25 m along 25 m of a street, and says 1.7 m; its IMU tilts by a degree.
    """
    recording = transect.open(real_data / "bags" / "robot_localization" / f"{bag}.bag")
    done = transect.run("PoseFusion/ErrorStateFilter", recording.slice("+0s", until))
    told = done["innovations"].values
    said = [each.text for each in done.conclusions]
    assert any(text.startswith("fix: heights are implausible: ") for text in said) == ("fix" in sensors)
    assert any(text.startswith("height: sigma ") for text in said)
    for sensor in sensors:
        count, below = (sum(each[f"{sensor}_{what}"] for each in told) for what in ("count", "below"))
        assert count > 50
        assert 0.90 <= below / count <= 0.99


def test_a_car_that_drives_when_its_log_begins_is_followed(real_data: Path):
    """KITTI 06 begins at 11.5 m/s. Its first 1.1 s of packets are interpolated: no motion fits those."""
    recording = transect.open(real_data / "kitti_raw_06").slice("+0s", "+15s")
    told = transect.run("PoseFusion/ErrorStateFilter", recording)["innovations"].values
    assert sum(each["fix_count"] for each in told) > 60
    assert sum(each["fix_refused"] for each in told) <= 5
    assert sum(each["fix_refused"] for each in told[12:]) == 0
