"""From a recording to a PDS4 bundle that a node of the Planetary Data System could take, and back.

The recording is simulated: two seconds of the Argo's laser and navigation. With your own it is
``transect archive init PATH``, an editor, and ``transect archive build archive.yaml -o bundle``.
"""

from pathlib import Path

import numpy as np

import transect
from transect.archive.assembly.sources import build, describe
from transect.archive.builder import context_path
from transect.archive.validation.options import ValidationOptions
from transect.archive.validation.validator import validate
from transect.simulation.day import WorldOptions as Day
from transect.simulation.day import simulate, write_day

write_day(simulate("marulan", Day(2.0, seed=1, streams=("LaserHorizontal", "Nav"))), Path("drive"))

# The file that a person completes. Here it is completed by a program: authors, an authority, a format.
config = Path("archive.yaml")
text = describe(Path("drive"), "drive")
for before, after in {
    'authors: ""': 'authors: "Doe, Jo; A University"',
    "authority: stand-in": "authority: urn:esa:psa",
    'name: "drive"': "name: argo_simulated",
    'title: "Nav: ': 'columns: {x: {description: "North, m", format: "%12.4f"}}\n    title: "Nav: ',
}.items():
    text = text.replace(before, after, 1)
config.write_text(text)

built = build(config, Path("bundle"))
print(f"{built.lidvid}: {len(built.changes)} labels, {built.size / 1e6:.1f} MB")

# Schemas and registered context products are not part of transect; all other rules are checked.
report = validate([built.folder], ValidationOptions("bundle"))
for note in report.notes:
    print("note:", note)
print(report.verdict, report.counts)
assert not report.counts["error"]

# The bundle opens as a recording; its numbers are those recorded, to the digits that were asked for.
before, after = transect.open("drive"), transect.open("bundle")
assert np.array_equal(after["nav"].t_ns, before["Nav"].t_ns)
assert np.array_equal(after["nav"]["y"], before["Nav"]["y"])
print("x differs by", np.abs(after["nav"]["x"] - before["Nav"]["x"]).max(), "m, which is %12.4f")

# Built again, nothing changes; with other data the versions grow, up to the bundle.
assert set(build(config, Path("bundle")).changes.values()) == {"none"}
config.write_text(text.replace("%12.4f", "%12.3f"))
again = build(config, Path("bundle"))
print(*(f"{lidvid} ({change})" for lidvid, change in again.changes.items() if change != "none"), sep="\n")
print("to be registered:", context_path(again.folder).name)
