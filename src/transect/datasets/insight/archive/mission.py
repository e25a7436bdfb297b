"""What labels of the arm say of the mission: who, where, and when on its clocks."""

from __future__ import annotations

from dataclasses import dataclass

from transect.archive.identifiers import Lid
from transect.archive.labels.areas import Context, Subject, utc_text
from transect.archive.labels.disciplines import Mission
from transect.base.clocks import NS
from transect.datasets.insight.products.clock import sclk_text, sol_of_sclk, utc_from_sclk
from transect.datasets.insight.products.names import ProductName

BUNDLE = Lid("urn:nasa:pds:insight_ida")
DOCUMENTS = Lid("urn:nasa:pds:insight_documents:document_ida")
"""Primary in the bundle of all documents of InSight, secondary in this one (4.5)."""
SIS = DOCUMENTS.child("insight_ida_bundle_sis")
MISSION = Subject("InSight", "Mission", Lid("urn:nasa:pds:context:investigation:mission.insight"))
LANDER = Subject(
    "InSight Mars Lander Spacecraft",
    "Spacecraft",
    Lid("urn:nasa:pds:context:instrument_host:spacecraft.insight"),
)
"""Named as it is registered. It is registered as a lander, for which the information model of this archive
(1.11.1.0) has no word."""
ARM = Subject("Instrument Deployment Arm", "Instrument", Lid("urn:nasa:pds:context:instrument:ida.insight"))
CAMERAS = {
    "IDC": Subject(
        "InSight Deployment Camera", "Instrument", Lid("urn:nasa:pds:context:instrument:idc.insight")
    ),
    "ICC": Subject(
        "InSight Context Camera", "Instrument", Lid("urn:nasa:pds:context:instrument:icc.insight")
    ),
}
MARS = Subject("Mars", "Planet", Lid("urn:nasa:pds:context:target:planet.mars"))
PHASE = "SURFACE MISSION"
DAY_NS = 86_400 * NS


@dataclass(frozen=True)
class Span:
    """From when to when a product's data are, on the spacecraft clock, ns."""

    start_ns: int
    stop_ns: int

    @staticmethod
    def of(name: ProductName, first_ns: int, last_ns: int) -> Span:
        """Return the times of the data; of the name where the data count from elsewhere (Table 12)."""
        start, stop = name.start_sclk * NS, name.end_sclk * NS
        near = start - DAY_NS <= first_ns and last_ns <= stop + DAY_NS
        return Span(first_ns, last_ns) if near else Span(start, stop)

    @property
    def sol(self) -> int:
        """On which they start."""
        return sol_of_sclk(self.start_ns)

    @property
    def utc(self) -> tuple[str, str]:
        """Both in UTC, as labels write it."""
        return utc_text(utc_from_sclk(self.start_ns)), utc_text(utc_from_sclk(self.stop_ns))


def arm_context(
    product_type: str,
    span: Span,
    sol: int,
    levels: tuple[str, ...],
    purpose: str = "Science",
    comment: str = "",
    instrument: Subject = ARM,
) -> Context:
    """Return what a product of the arm, or of a camera, is of; `sol` is that on which its data start.

    Counts of the spacecraft clock have their partition, and sols are a pair, as 3.3.1 asks.
    """
    counts = sclk_text(span.start_ns), sclk_text(span.stop_ns)
    sols = sol, max(sol, sol_of_sclk(span.stop_ns))
    said = Mission(PHASE, product_type, counts, sols=sols).element()
    return Context(
        span.utc, levels, purpose, (MISSION,), (LANDER, instrument), (MARS,), (said,) if said else (), comment
    )
