"""Open a recording and look at it: ``python 01_open.py [PATH]``.

Without a path a small AMEDS recording with made-up numbers is written first.
"""

import sys
import tempfile
from pathlib import Path

import transect


def made_up_recording(folder: Path) -> Path:
    from transect import formats
    from transect.datasets.ameds.folders.sample import sample_recording

    path = folder / "traverse_3"
    formats.write(sample_recording(seconds=5.0), path, "ameds")
    return path


def main(path: Path) -> None:
    rec = transect.open(path)  # the path is enough; the format is recognised
    print(rec)  # a table: stream, type, samples, rate, span, longest gap

    fix = rec["Gnss/Pose"]
    print(fix.table.schema.names)  # a pyarrow Table; fix.to_pandas(), fix.to_polars()
    print(fix.at("+1.5s").value)  # the sample nearest to 1.5 s after the first, as a NavFix

    cloud = rec["Lidar"].at("12:00:03.2").payload  # loaded now and not before
    print(f"{len(cloud)} points in the frame {cloud.frame}, first {cloud.points[0]}")
    image = rec["MainCam"].at("+2s").payload
    print(f"{image.width} x {image.height} {image.mode} from {rec.cameras['MainCam'].name}")

    # T_Origin_MainCam takes points of MainCam to Origin, at that time.
    print(rec.frames.lookup("Origin", "MainCam", fix.t_ns[200]).round(3))

    part = rec.slice("+1s", "+1.2s")  # a view, no copy
    print(f"{len(part['Gnss/Imu'])} of {len(rec['Gnss/Imu'])} inertial samples")
    for sample in part.merge("MainCam", "Lidar"):  # in the order of time
        print(sample)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(made_up_recording(Path(folder)))
