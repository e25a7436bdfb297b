"""`transect demo`: a tour on a field day that it simulates itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transect.base.files import write_text

if TYPE_CHECKING:
    from transect.recording import Recording

DRIVE_S, IMAGES_S, IMAGE_SCALE = 140.0, 11.0, 0.3
"""Seconds of the drive, of the part with images, and the size of these against the camera's own."""
NAVIGATION = ("Odometry", "Imu", "Gps/*")
"""What is recorded on the whole drive: wheels, IMU, satellite receiver."""
ROUND_S, LASER, WHEELS = 38.0, "LaserStarboard", "Payload/VelocityTurnRate"
"""Seconds of a drive round houses that comes back to its beginning, and what is recorded on it."""
FAULT, SEVERITY = "gnss_spike", 0.8
"""What is planted in the drive."""


@click.command()
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("transect-demo"), help="Where to write."
)
def command(out: Path) -> None:
    """Show what transect does, on drives that it simulates.

    It looks at the drive of a weeding robot, finds out where the robot was, breaks its GNSS, finds that out,
    too, keeps the results, makes one again, and archives it all. On the way another robot comes back to where
    it was, and knows the place again.

    Takes a minute or two. Every step is a command that you can type on your own recording.
    """
    from .info import show_summary

    drive, rows = out / "drive", out / "rows"
    _say("A weeding robot drives down a row, turns on the headland and comes back: 100 m, with truth.")
    recorded = _simulate("rosario", drive, seconds=DRIVE_S, streams=NAVIGATION)
    _say("What was recorded?")
    _step(f"transect info {drive}")
    show_summary(recorded)
    _say("Where was the robot? Wheels, IMU and GNSS fused, judged by the truth.")
    drawn = _run("PoseFusion", recorded, drive, out / "fused")
    _say(f"What if the GNSS is wrong? {FAULT} moves single fixes by up to 50 m.")
    broken = _plant(recorded, drive, out / "drive-with-spikes")
    _say("Which sensor can be trusted, and when? The spikes are found without the truth.")
    _check(broken, out / "drive-with-spikes")
    _say("The fusion refuses them.")
    drawn += _run("PoseFusion", broken, out / "drive-with-spikes", out / "fused-with-spikes")
    _say("And by its cameras alone? A stereo camera on the first 11 m.")
    seen = _simulate("rosario", rows, seconds=IMAGES_S, scale=IMAGE_SCALE)
    drawn += _run("VisualOdometry", seen, rows, out / "odometry")
    _say("Odometry drifts. A robot with a laser that drives round a house knows where it was before.")
    drawn.append(_close_loop(out / "houses", out / "round"))
    _say("All runs in one table.")
    _compare([out / name for name in ("fused", "fused-with-spikes", "odometry")])
    store = out / "products.gpkg"
    _say("Results are kept in a GeoPackage, which QGIS and GDAL open, and found by time and place.")
    _keep([out / "fused", out / "odometry"], store)
    _say("Ask for one by name; what is there and good enough is the answer.")
    asked = _request("Pose", recorded, drive, store)
    _say("And make it again from the raw logs: is it the same, byte by byte?")
    _reproduce(store, asked)
    drawn.append(_map(store, out / "products.png"))
    _say("One page tells the whole story: what was there, what broke, where the robot went.")
    page = _report(out / "fused-with-spikes", store, out / "report.html")
    _say("Last, publish it: a PDS4 archive of the drive and the fused path, checked by all rules there are.")
    _archive(drive, out / "fused", out)
    click.echo("\nPictures to look at:")
    for path in drawn:
        click.echo(f"  {path}")
    click.echo(f"Next: transect view {drive}; transect run; transect info PATH/OF/YOUR/OWN/DATA")
    click.echo(f"Open {page} in a browser: it needs no network.")


def _simulate(world: str, folder: Path, **asked: Any) -> Recording:
    """Simulate a day with some `Options`, write it, and open what was written."""
    from transect import formats
    from transect.simulation.day import Options, simulate, write_day

    options = Options(**asked)
    typed = [f"transect simulate {world} -o {folder} --seconds {options.seconds:g}"]
    typed += [f"--scale {options.scale:g}"] if options.scale != 1.0 else []
    typed += [f"--seed {options.seed}"] if options.seed else []
    typed += [f"--condition {name}={value}" for name, value in options.conditions.items()]
    typed += [f"--streams '{name}'" for name in options.streams]
    _step(" ".join(typed))
    shutil.rmtree(folder, ignore_errors=True)
    for sentence in write_day(simulate(world, options), folder):
        click.echo(f"note: {sentence}")
    return formats.open(folder)


def _check(recording: Recording, path: Path) -> None:
    """Check the recording's sensors, and print what is wrong with them."""
    from transect.integrity import check
    from transect.integrity.report import report_sensors

    from .check import show_reports

    _step(f"transect check {path}")
    verdicts = check(recording)
    show_reports(recording, report_sensors(verdicts, recording), verdicts)


def _run(compound: str, recording: Recording, path: Path, folder: Path) -> list[Path]:
    """Run a compound on the recording; print the digest and how good it is; return pictures of its path."""
    from transect.engine import Compound, Replay
    from transect.engine.runs import finish, new_folder
    from transect.evaluation.runs import judge_run

    from .run.report import show_conclusion

    _step(f"transect run {compound} {path} -o {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    with new_folder(folder) as new:
        run = finish(Replay(Compound.of(compound), recording, folder=new.path if new else None), new)
        if run.errors:
            raise run.errors[0]
        judged = judge_run(run, recording)
    click.echo(f"{run.name}, digest {run.digest}: same bytes in, same digest out")
    show_conclusion(run, judged)
    return [folder / name for name in judged.figures if Path(name).stem.startswith("trajectory")]


def _close_loop(drive: Path, folder: Path) -> Path:
    """Drive round houses, know the beginning again, and draw the way before and after."""
    from .maps import AFTER, BEFORE, show_map

    asked = {"seconds": ROUND_S, "streams": (LASER, WHEELS), "conditions": {"scene": "yard"}}
    _run("LaserSlam", _simulate("marulan", drive, **asked), drive, folder)
    picture = folder.with_suffix(".png")
    _step(f"transect maps show {folder} -o {picture}")
    facts = show_map(folder, picture)
    click.echo(
        f"{facts['places']} places, {facts['loops']} loops: the wheels alone are {facts[BEFORE]:.2f} m off, "
        f"the corrected way {facts[AFTER]:.2f} m, by the truth of the simulation"
    )
    return picture


def _plant(recording: Recording, path: Path, folder: Path) -> Recording:
    """Write the recording again with a fault, and say where its labels are."""
    from transect import formats
    from transect.simulation.faults.written import write_injected

    _step(f"transect inject {path} --fault {FAULT} --severity {SEVERITY} -o {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    written = write_injected(recording, folder, FAULT, SEVERITY)
    touched = written.labels.num_rows
    click.echo(f"{touched} samples are touched, labelled in {folder / 'truth' / 'faults.parquet'}")
    return formats.open(folder)


def _keep(runs: list[Path], store: Path) -> None:
    from transect.products import open_store
    from transect.products.run_products import keep_run

    from .products import show_products

    for path in (store, store.with_suffix(".payloads")):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    with open_store(store) as opened:
        for run in runs:
            _step(f"transect products keep {store} {run}")
            keep_run(opened, run)
        _step(f"transect products find {store}")
        show_products(opened.find())


def _request(kind: str, recording: Recording, path: Path, store: Path) -> str:
    """Ask for a product, print what was found, and return its id."""
    from transect.orchestrator import Request, answer
    from transect.products import open_store

    from .products import show_products

    _step(f"transect request {kind} --recording {path} --store {store}")
    with open_store(store) as opened:
        found = answer(Request(kind), recording, opened)
    assert found.product is not None
    show_products([found.product])
    return found.product.id


def _reproduce(store: Path, identifier: str) -> None:
    from transect.products import open_store
    from transect.products.reproduction import reproduce

    _step(f"transect products reproduce {store} {identifier[:12]}")
    with open_store(store) as opened:
        found = reproduce(opened, identifier)
    click.echo(
        f"{found.run.name}: {'identical' if found.identical else 'NOT the same'}, digest {found.digest}"
    )


def _map(store: Path, picture: Path) -> Path:
    from transect.draw.figures import save_figure
    from transect.products import Wanted, open_store
    from transect.products.export import map_figure

    _step(f"transect products map {store} --name pose -o {picture}")
    with open_store(store) as opened:
        save_figure(map_figure(opened, opened.find(Wanted(name="pose"))), picture)
    return picture


def _report(run: Path, store: Path, page: Path) -> Path:
    """Write the page of a run and its recording."""
    from transect.view.report import Wanted

    from .report import write_report
    from .shared.recordings import Opening

    typed = f"transect report {run} --store {store} -o {page}"
    _step(typed)
    write_report(Opening((str(run),)), page, Wanted(), store=str(store), command=typed)
    return page


def _archive(recording: Path, run: Path, out: Path) -> None:
    """Describe, build and validate a bundle of a recording and a run."""
    from transect.archive.assembly.sources import build, describe
    from transect.archive.builder import context_path
    from transect.archive.context import find_registry
    from transect.archive.validation.options import ValidationOptions
    from transect.archive.validation.validator import validate

    from .archive import show_built, show_report

    config, bundle = out / "archive.yaml", out / "bundle"
    _step(f"transect archive init {recording} {run} -o {config}")
    write_text(config, describe(recording, recording.name, [run.name]))
    _step(f"transect archive build {config} -o {bundle}")
    shutil.rmtree(bundle, ignore_errors=True)
    show_built(build(config, bundle))
    own = (context_path(bundle),) if find_registry().path else ()  # those of others are not known either
    added = "".join(f" --add-context {each}" for each in own)
    _step(f"transect archive validate {bundle} --rule bundle{added}")
    show_report(validate([bundle], ValidationOptions("bundle", added_context=own)))


def _compare(folders: list[Path]) -> None:
    from transect.evaluation.result import load_results

    from .shared.results import show_results

    _step(f"transect compare {' '.join(str(folder) for folder in folders)}")
    show_results(load_results(folders))


def _say(text: str) -> None:
    click.echo(f"\n{text}")


def _step(text: str) -> None:
    click.echo(click.style(f"> {text}", bold=True))
