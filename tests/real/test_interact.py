"""The models of Interact against what others know: Kuka's arm, and published lengths."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import transect
from transect import robots
from transect.datasets.ameds.robot.arms import chain_of
from transect.evaluation.traverse import traverse_of

JOINT = re.compile(r'<joint name="joint_(\d)" type="revolute">(.*?)</joint>', re.DOTALL)


@pytest.fixture(scope="module")
def described(real_data: Path) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Offset (m), axis and upper limit (degrees) of each joint in a public description of the LWR."""
    text = (real_data / "urdf/kuka_lwr/urdf/lwr.urdf.xacro").read_text()
    joints: list[tuple[np.ndarray, np.ndarray, float]] = []
    for _, body in JOINT.findall(text):
        numbers = [re.search(pattern, body) for pattern in (r'<origin xyz="([^"]*)"', r'<axis xyz="([^"]*)"')]
        offset, axis = (np.array(match[1].split(), float) for match in numbers if match)
        limit = re.search(r'upper="\$\{(\d+) \* M_PI / 180\}"', body)
        assert limit is not None
        joints.append((offset, axis, float(limit[1])))
    assert len(joints) == 7
    return joints


def test_table_3_is_the_arm_that_others_describe(
    described: list[tuple[np.ndarray, np.ndarray, float]],
) -> None:
    arm = chain_of(robots.load("interact"))
    for q in np.random.default_rng(8).uniform(-2, 2, (20, 7)):
        R, p = np.eye(3), np.zeros(3)
        for angle, (offset, axis, _) in zip(q, described, strict=True):
            p = p + R @ offset
            R = R @ Rotation.from_rotvec(angle * axis).as_matrix()
        T = arm.forward(q)
        np.testing.assert_allclose(T[:3, :3], R, atol=1e-9)
        # Their last frame is 78 mm further out, their shoulder half a millimetre higher than in Table 3.
        wrist = p - R @ described[-1][0]
        assert np.linalg.norm(T[:3, 3] - wrist) < 1e-3


def test_the_limits_are_those_that_others_describe(
    described: list[tuple[np.ndarray, np.ndarray, float]],
) -> None:
    arm = chain_of(robots.load("interact"))
    assert np.degrees(arm.upper) == pytest.approx([limit for *_, limit in described])
    assert (arm.lower == -arm.upper).all()


@pytest.mark.parametrize(("sequence", "metres"), [("01", 615.15), ("03", 169.45)])
def test_the_plain_length_is_the_published_one_to_its_last_digit(
    real_data: Path, sequence: str, metres: float
) -> None:
    # Document 001, Table 3. (Our copy of sequence 04 lacks 4 s, and is 4 m shorter than its 152.32 m.)
    rec = transect.open(real_data / "rosario_gt_odom", sequence=sequence)
    found = traverse_of(rec)
    assert found.steps_m == pytest.approx(metres, abs=0.006)
    # A sum of 5 Hz steps has the receiver's noise in it, most of it in height.
    assert metres * 0.98 < found.length_m < metres
