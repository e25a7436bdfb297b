"""A report on a recording: streams, problems, trajectory, accuracy, provenance, citation.

The recording is simulated, with a GNSS that jumps. With a real one it is ``transect.open(path)``; the command
is ``transect report PATH``.
"""

from pathlib import Path

from transect.simulation.day import WorldOptions, simulate
from transect.simulation.faults import inject
from transect.view.report import ReportOptions, gather, write_page
from transect.view.report.sentences import summarise

day = simulate("rosario", WorldOptions(10.0, seed=1, streams=("Imu", "Odometry", "Gps/*")))
broken, labels = inject(day.recording, "gnss_spike", severity=0.8)

# The facts are gathered once; a page, or a program, then only reads them.
report, _ = gather(["a drive with spikes"], lambda *_: broken, ReportOptions(pictures=0))
for sentence in summarise(report):
    print(sentence)

page = Path("report.html")
page.write_text(write_page(report), encoding="utf-8")
print(f"{page}: {page.stat().st_size / 1000:.0f} kB, to be opened in any browser")
