"""`transect table hauler PATH`: when the battery was low."""

import click
import numpy as np

import transect


@click.command()
@click.argument("path")
def command(path: str) -> None:
    """Print the lowest voltage of a drive."""
    voltage = transect.open(path)["Imu"]["voltage"]
    click.echo(f"lowest voltage  {np.nanmin(voltage):.1f} V")
