"""`transect demo`: a tour on field days that it simulates itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from transect.recording import Recording

FAULT, SEVERITY = "gnss_spike", 0.8
"""What is planted in the field day."""


@click.command()
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("transect-demo"), help="Where to write."
)
def command(out: Path) -> None:
    """Simulate two field days; look at one, find out where the robot was in the other, plant a fault."""
    etna = _simulated("etna", out / "etna", seconds=4.0, scale=0.05)
    _step(f"transect info {out / 'etna'}")
    click.echo(repr(etna))
    _step("where is the lidar on the rover?  rec.frames.lookup('Origin', 'Lidar')")
    click.echo(str(etna.frames.lookup("Origin", "Lidar").round(3)))
    _run("WheelDrift", etna, out / "etna", out / "drift")
    field = _simulated("rosario", out / "field", seconds=6.0, scale=0.4)
    for compound, folder in (("VisualOdometry", "odometry"), ("PoseFusion", "fused")):
        _run(compound, field, out / "field", out / folder)
    _plant(field, out / "field-with-fault")
    click.echo(f"\nnext: transect compare {out / 'odometry'} {out / 'fused'}, or look at the pictures")


def _simulated(world: str, folder: Path, seconds: float, scale: float) -> Recording:
    """Simulate a day, write it, and open what was written."""
    from transect import formats
    from transect.simulation.day import Options, simulate, write_day

    _step(f"transect simulate {world} -o {folder} --seconds {seconds:g} --scale {scale:g}")
    shutil.rmtree(folder, ignore_errors=True)
    for sentence in write_day(simulate(world, Options(seconds=seconds, scale=scale)), folder):
        click.echo(f"note: {sentence}")
    return formats.open(folder)


def _run(compound: str, recording: Recording, path: Path, folder: Path) -> None:
    """Run a compound on the recording; print what each node cost, the digest, and how good it is."""
    from transect import engine
    from transect.evaluation.runs import judge_run

    from .run.report import show_conclusion, show_evaluation

    _step(f"transect run {compound} {path} -o {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    run = engine.run(compound, recording, out=folder)
    click.echo(f"digest {run.digest}: same bytes in, same digest out")
    judged = judge_run(run, recording)
    show_evaluation(judged)
    show_conclusion(run, judged)


def _plant(recording: Recording, folder: Path) -> None:
    """Write the recording again with a fault, and say where its labels are."""
    from transect.simulation.faults.written import write_injected

    _step(f"transect inject {folder.parent / 'field'} --fault {FAULT} --severity {SEVERITY} -o {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    written = write_injected(recording, folder, FAULT, SEVERITY)
    touched = written.labels.num_rows
    click.echo(f"{touched} samples are touched, labelled in {folder / 'truth' / 'faults.parquet'}")


def _step(text: str) -> None:
    click.echo(click.style(f"\n> {text}", bold=True))
