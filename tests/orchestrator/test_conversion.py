"""Products in the form that the asker wants."""

import numpy as np
import pytest

from transect.errors import FrameError, UnsupportedError, UsageError
from transect.formats.geotiff import encode_geotiff
from transect.formats.shared.clouds import decode_cloud, encode_cloud
from transect.geometry import se3
from transect.orchestrator.conversion import convert
from transect.orchestrator.forms import ProductForm
from transect.products import Payload, Product
from transect.recording import FrameTree
from transect.types import GridMap, PointCloud

TUM = b"# timestamp tx ty tz qx qy qz qw\n1.5 1 2 3 0 0 0 1\n2.5 4 5 6 0 0 1 0\n"


def product_of(content: bytes, kind: str, format: str, frame: str = "map") -> Product:
    return Product(kind, Payload.of(content, format), "it", frame=frame, t0_ns=0, t1_ns=1)


def poses(form: ProductForm, frames: FrameTree | None = None) -> list[list[float]]:
    text = convert(product_of(TUM, "Pose", "tum"), TUM, form, frames).decode()
    rows = [line for line in text.splitlines() if line[0] not in "#t"]
    return [[float(word) for word in line.replace(",", " ").split()] for line in rows]


@pytest.fixture
def frames() -> FrameTree:
    """`site` is `map` turned by a quarter and moved by 10 m."""
    tree = FrameTree()
    tree.add_static("site", "map", se3.from_matrix([[0, -1, 0], [1, 0, 0], [0, 0, 1]], [10.0, 0.0, 0.0]))
    return tree


def test_poses_have_the_frame_unit_and_file_type_that_is_wanted(frames: FrameTree) -> None:
    assert poses(ProductForm("csv", unit="mm")) == [
        [1.5, 1000, 2000, 3000, 0, 0, 0, 1],
        [2.5, 4000, 5000, 6000, 0, 0, 1, 0],
    ]
    moved = np.array(poses(ProductForm("tum", frame="site"), frames))
    assert moved[:, 1:4] == pytest.approx(np.array([[8, 1, 3], [5, 4, 6]]))
    assert poses(ProductForm("kitti"))[1] == pytest.approx([-1, 0, 0, 4, 0, -1, 0, 5, 0, 0, 1, 6])


def test_as_it_is_means_the_same_bytes() -> None:
    assert convert(product_of(TUM, "Pose", "tum"), TUM, ProductForm(format="tum")) == TUM


def test_clouds_are_moved_downsampled_and_written_as_others_read_them(frames: FrameTree) -> None:
    cloud = PointCloud(
        np.array([[0.0, 0, 0], [0.1, 0, 0], [5.0, 1, 2]]), {"intensity": np.array([1.0, 2, 3])}
    )
    content = encode_cloud(cloud, ".ply")
    product = product_of(content, "PointCloud", "ply")
    downsampled = decode_cloud(convert(product, content, ProductForm("pcd", resolution=1.0)), "a.pcd")
    assert (len(downsampled), list(downsampled.fields["intensity"])) == (2, [1.0, 3.0])
    moved = decode_cloud(convert(product, content, ProductForm(frame="site"), frames), "a.ply")
    assert moved.points[2] == pytest.approx([9, 5, 2])
    head, *rows = convert(product, content, ProductForm("csv", unit="cm")).decode().splitlines()
    assert (head, rows[2]) == ("x [cm],y [cm],z [cm]", "500,100,200")


def test_maps_become_coarser_by_the_mean_of_what_was_measured() -> None:
    heights = np.array([[1.0, 3.0, 5.0], [np.nan, 5.0, np.nan]])
    content = encode_geotiff(GridMap({"elevation": heights}, (0.5, 0, 10, 0, -0.5, 20)))
    product = product_of(content, "GridMap", "tif")
    text = convert(product, content, ProductForm("csv", resolution=1.0)).decode()
    rows = [[float(word) for word in line.split(",")] for line in text.splitlines()[1:]]
    assert rows == [pytest.approx([10.5, 19.5, 3.0]), pytest.approx([11.5, 19.5, 5.0])]
    with pytest.raises(UnsupportedError, match="no resolution"):
        convert(product, content, ProductForm(resolution=0.1))
    with pytest.raises(UnsupportedError, match="cannot be rotated"):
        convert(product, content, ProductForm(frame="site"))


@pytest.mark.parametrize(
    ("form", "error"),
    [
        (ProductForm("png"), UnsupportedError), (ProductForm(frame="moon"), FrameError),
        (ProductForm(resolution=1.0), UnsupportedError), (ProductForm("tum", unit="mm"), UnsupportedError),
    ],
)  # fmt: skip
def test_what_cannot_be_is_a_typed_error(form: ProductForm, error: type[Exception]) -> None:
    with pytest.raises(error):
        convert(product_of(TUM, "Pose", "tum"), TUM, form)


def test_a_unit_that_is_no_length_is_refused() -> None:
    with pytest.raises(UsageError):
        ProductForm(unit="kg")
    with pytest.raises(UsageError):
        ProductForm(resolution=-1.0)
    with pytest.raises(UnsupportedError):
        convert(product_of(b"x", "Record", "parquet"), b"x", ProductForm("csv"))
