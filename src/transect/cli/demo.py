"""`transect demo`: a guided tour on simulated recordings."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transect.base.files import write_text

if TYPE_CHECKING:
    from transect.recording import Recording

DRIVE: dict[str, Any] = {"seconds": 140.0, "streams": ("Odometry", "Imu", "Gps/*")}
STEREO_DRIVE: dict[str, Any] = {"seconds": 11.0, "scale": 0.3}  # images at a fraction of the real size
LOOP_DRIVE: dict[str, Any] = {
    "seconds": 38.0,
    "streams": ("LaserStarboard", "Payload/VelocityTurnRate"),
    "conditions": {"scene": "yard"},
}
"""A drive around houses that ends where it started."""
FAULT = "gnss_spike"
FAULT_SEVERITY = 0.8


@click.command()
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("transect-demo"), help="Where to write."
)
def command(out: Path) -> None:
    """Show what transect does, on simulated recordings.

    Fuses the sensors of a weeding robot, injects GNSS faults and detects them, runs stereo odometry and a
    laser SLAM with a loop closure, stores the results, reproduces one, and writes a report and an archive.

    Takes one to two minutes. Every step is a command that works on your own recordings, too.
    """
    from .info import show_summary

    drive, rows = out / "drive", out / "rows"
    _say("A weeding robot drives along a row and back: 100 m, with ground truth.")
    recorded = _simulate("rosario", drive, **DRIVE)
    _say("Which streams were recorded?")
    _step(f"transect info {drive}")
    show_summary(recorded)
    _say("Where was the robot? Fuse wheels, IMU and GNSS, and evaluate against the ground truth.")
    drawn = _run("PoseFusion", recorded, drive, out / "fused")
    _say(f"Inject a GNSS fault: {FAULT} displaces single fixes by up to 50 m.")
    broken = _inject(recorded, drive, out / "drive-with-spikes")
    _say("Check the sensors: the spikes are detected without ground truth.")
    _check(broken, out / "drive-with-spikes")
    _say("The fusion rejects the spikes.")
    drawn += _run("PoseFusion", broken, out / "drive-with-spikes", out / "fused-with-spikes")
    _say("Odometry from the stereo camera alone, over 11 s.")
    seen = _simulate("rosario", rows, **STEREO_DRIVE)
    drawn += _run("VisualOdometry", seen, rows, out / "odometry")
    _say("Odometry drifts. A laser SLAM closes the loop around a house and corrects the trajectory.")
    drawn.append(_close_loop(out / "houses", out / "round"))
    _say("All runs in one table.")
    _compare([out / name for name in ("fused", "fused-with-spikes", "odometry")])
    store = out / "products.gpkg"
    _say("Store the results in a GeoPackage for QGIS and GDAL, and find them by time and place.")
    _keep([out / "fused", out / "odometry"], store)
    _say("Request a product by name: a stored one that is good enough is returned.")
    asked = _request("Pose", recorded, drive, store)
    _say("Reproduce it from the raw logs, and compare every byte.")
    _reproduce(store, asked)
    drawn.append(_map(store, out / "products.png"))
    _say("A report on one page: streams, problems, trajectory and accuracy.")
    page = _report(out / "fused-with-spikes", store, out / "report.html")
    _say("Publish it: a PDS4 archive of the recording and the fused trajectory, validated.")
    _archive(drive, out / "fused", out)
    click.echo("\nFigures:")
    for path in drawn:
        click.echo(f"  {path}")
    click.echo(f"Next: transect view {drive}; transect run; transect info PATH/OF/YOUR/OWN/DATA")
    click.echo(f"Report: open {page} in a browser (works offline)")


def _simulate(world: str, folder: Path, **asked: Any) -> Recording:
    """Simulate a day with some `WorldOptions`, write it, and open the written recording."""
    from transect import formats
    from transect.simulation.day import WorldOptions, simulate, write_day

    options = WorldOptions(**asked)
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
    """Check the recording's sensors, and print their problems."""
    from transect.integrity import check
    from transect.integrity.report import report_sensors

    from .check import show_reports

    _step(f"transect check {path}")
    verdicts = check(recording)
    show_reports(recording, report_sensors(verdicts, recording), verdicts)


def _run(compound: str, recording: Recording, path: Path, folder: Path) -> list[Path]:
    """Run a compound on the recording; print the digest and errors; return figures of its trajectory."""
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
    click.echo(f"{run.name}, digest {run.digest} (equal inputs give equal digests)")
    show_conclusion(run, judged)
    return [folder / name for name in judged.figures if Path(name).stem.startswith("trajectory")]


def _close_loop(drive: Path, folder: Path) -> Path:
    """Drive around houses, close the loop, and draw the trajectory with and without it."""
    from .maps import CORRECTED_RMSE, ODOMETRY_RMSE, show_map

    _run("LaserSlam", _simulate("marulan", drive, **LOOP_DRIVE), drive, folder)
    picture = folder.with_suffix(".png")
    _step(f"transect maps show {folder} -o {picture}")
    facts = show_map(folder, picture)
    click.echo(
        f"{facts['keyframes']} keyframes, {facts['loop closures']} loop closures; RMSE against ground truth: "
        f"{facts[ODOMETRY_RMSE]:.2f} m by odometry, {facts[CORRECTED_RMSE]:.2f} m with loop closures"
    )
    return picture


def _inject(recording: Recording, path: Path, folder: Path) -> Recording:
    """Write the recording with a fault, and print where its labels are."""
    from transect import formats
    from transect.simulation.faults.written import write_injected

    _step(f"transect inject {path} --fault {FAULT} --severity {FAULT_SEVERITY} -o {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    written = write_injected(recording, folder, FAULT, FAULT_SEVERITY)
    touched = written.labels.num_rows
    click.echo(f"{touched} samples modified, labelled in {folder / 'truth' / 'faults.parquet'}")
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
    """Request a product, print it, and return its id."""
    from transect.orchestrator import ProductRequest, answer
    from transect.products import open_store

    from .products import show_products

    _step(f"transect request {kind} --recording {path} --store {store}")
    with open_store(store) as opened:
        found = answer(ProductRequest(kind), recording, opened)
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
        f"{found.run.name}: {'identical' if found.identical else 'NOT identical'}, digest {found.digest}"
    )


def _map(store: Path, picture: Path) -> Path:
    from transect.draw.figures import save_figure
    from transect.products import ProductQuery, open_store
    from transect.products.export import map_figure

    _step(f"transect products map {store} --name pose -o {picture}")
    with open_store(store) as opened:
        save_figure(map_figure(opened, opened.find(ProductQuery(name="pose"))), picture)
    return picture


def _report(run: Path, store: Path, page: Path) -> Path:
    """Write the page of a run and its recording."""
    from transect.view.report import ReportOptions

    from .report import write_report
    from .shared.recordings import Opening

    typed = f"transect report {run} --store {store} -o {page}"
    _step(typed)
    write_report(Opening((str(run),)), page, ReportOptions(), store=str(store), command=typed)
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
    own = (context_path(bundle),) if find_registry().path else ()  # without a registry, none is checked
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
