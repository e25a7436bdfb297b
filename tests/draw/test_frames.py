import io
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.text import Text

from transect.draw.frames import frame_tree_figure
from transect.errors import FrameError, GeometryError

EDGES = [
    ("World", "Origin", True),
    ("Origin", "Lidar", False),
    ("Origin", "MainArm (base)", False),
    ("MainArm (base)", "MainArm (end)", True),
    ("MainArm (end)", "MainCam", False),
]


def at(x: float, y: float, z: float) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, 3] = x, y, z
    return matrix


POSES = {
    "Origin": np.eye(4),
    "Lidar": at(-0.549, 0, -1.389),
    "MainArm (base)": at(-0.1, 0, -0.647),
    "MainArm (end)": at(-0.1, 0, -1.447),
    "MainCam": at(0.1, 0, -1.447),
}


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_every_frame_is_named_in_the_tree_and_those_with_a_pose_in_space():
    tree, space = frame_tree_figure(EDGES, POSES, z_down=True).axes
    assert {"World", *POSES} <= set(texts(tree))
    assert set(POSES) <= set(texts(space))
    assert "World" not in texts(space)


def test_the_tree_lists_positions_in_the_root():
    tree, _ = frame_tree_figure(EDGES, POSES).axes
    assert "−1.389" in texts(tree)
    assert "−0.000" not in texts(tree)


def test_names_in_space_do_not_overlap():
    figure = frame_tree_figure(EDGES, dict.fromkeys(POSES, np.eye(4)))
    figure.draw_without_rendering()
    _, space = figure.axes
    # An annotation's own extent includes its line.
    boxes = [Text.get_window_extent(text) for text in space.texts if text.get_text() in POSES]
    assert len(boxes) == 5
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_without_poses_only_the_tree_is_drawn():
    assert len(frame_tree_figure(EDGES).axes) == 1
    assert len(frame_tree_figure([]).axes) == 1


def test_an_unknown_pose_leaves_its_frame_in_the_tree_only():
    figure = frame_tree_figure(EDGES, POSES | {"MainCam": np.full((4, 4), np.nan)})
    assert "MainCam" in texts(figure.axes[0])
    assert "MainCam" not in texts(figure.axes[1])


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(FrameError, match="Moon"):
        frame_tree_figure(EDGES, {"Moon": np.eye(4)})
    with pytest.raises(GeometryError, match=r"expected shape \(4, 4\)"):
        frame_tree_figure(EDGES, {"Lidar": np.eye(3)})


def test_the_same_frames_give_the_same_picture():
    def pixels() -> bytes:
        buffer = io.BytesIO()
        frame_tree_figure(EDGES, POSES, title="Interact").savefig(buffer, format="raw", dpi=40)
        return buffer.getvalue()

    assert pixels() == pixels()


def test_no_window_system_is_chosen():
    code = (
        "import sys; from transect.draw.frames import frame_tree_figure;"
        "assert 'matplotlib' not in sys.modules;"
        "frame_tree_figure([('a', 'b', False)]); assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
