"""Areas of a label other than files: identification, context and references."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from transect.base.clocks import iso_from_ns

from ..identifiers import Lid, Lidvid, Vid
from ..standard import Standard
from ..xml import LabelElement, ascii_text, group, leaf, nil

LEVELS = ("Raw", "Partially Processed", "Calibrated", "Derived")
"""Processing levels, the lowest first (InSight SIS, Table 5). Telemetry is not archived."""
SUBJECTS = {
    "Product_Observational": "data", "Product_Ancillary": "ancillary", "Product_Document": "document",
    "Product_Browse": "browse", "Product_Collection": "collection", "Product_Bundle": "bundle",
}  # fmt: skip
"""How the types of references from each kind of product begin."""
_HOST, _INSTRUMENT = "is_instrument_host", "is_instrument"


@dataclass(frozen=True)
class LabelSubject:
    """A mission, robot, instrument or target of the data."""

    # as registered, where it is
    name: str
    type: str
    lid: Lid | None = None  # its context product
    comment: str = ""  # said of the reference
    description: str = ""  # of a part of the observing system for which there is no context product


@dataclass(frozen=True)
class ProductContext:
    """The context of a product."""

    # (str, str) start and stop in UTC, as `utc_text` writes them; None where that is not known
    times: tuple[str, str] | None = None
    levels: tuple[str, ...] = ()  # of `LEVELS`; several for a bundle
    purpose: str = "Science"  # `Science`, `Engineering`, `Navigation`, ...
    investigations: tuple[LabelSubject, ...] = ()
    system: tuple[LabelSubject, ...] = ()  # the robot and its instruments
    targets: tuple[LabelSubject, ...] = ()
    disciplines: tuple[
        LabelElement, ...
    ] = ()  # of dictionaries, in the order msn, proc, disp, geom, or any other
    comment: str = ""

    def joined(self, others: Iterable[ProductContext]) -> ProductContext:
        """Return a context that holds for all others, too: the longest time, all levels and subjects."""
        every = [self, *others]
        times = [each.times for each in every if each.times is not None]
        found = {level for each in every for level in each.levels}
        return replace(
            self,
            times=(min(start for start, _ in times), max(stop for _, stop in times)) if times else None,
            levels=tuple(level for level in LEVELS if level in found),
            investigations=tuple(dict.fromkeys(one for each in every for one in each.investigations)),
            system=tuple(dict.fromkeys(one for each in every for one in each.system)),
            targets=tuple(dict.fromkeys(one for each in every for one in each.targets)),
            disciplines=(),
        )


@dataclass(frozen=True)
class LabelReference:
    """Another product that a label refers to, in any version or in one."""

    to: Lid | Lidvid
    type: str
    comment: str = ""

    def element(self, tag: str = "Internal_Reference") -> LabelElement:
        """Return the reference as it stands in a label."""
        name = "lidvid_reference" if isinstance(self.to, Lidvid) else "lid_reference"
        return group(
            tag,
            leaf(name, self.to),
            leaf("reference_type", self.type),
            leaf("comment", ascii_text(self.comment)),
        )


@dataclass(frozen=True)
class CitationInformation:
    """Citation of a product."""

    description: str
    year: int
    authors: str = ""  # `Name, G.; Other, A.`; "" where nobody is named
    doi: str = ""
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True)
class VersionChange:
    """What one version of a product changed: an entry of its history."""

    date: str  # `2024-05-01`
    vid: Vid
    description: str


def utc_text(t_ns: int) -> str:
    """Return a time in UTC with six decimals, which is what PDS4 takes; the rest is cut off."""
    return f"{iso_from_ns(t_ns, digits=6)}Z"


def identification_area(
    lidvid: Lidvid,
    title: str,
    kind: str,
    standard: Standard,
    citation: CitationInformation | None = None,
    history: Iterable[VersionChange] = (),
) -> LabelElement:
    """Return what identifies a product."""
    changes = [
        group(
            "Modification_Detail", leaf("modification_date", each.date), leaf("version_id", each.vid),
            leaf("description", each.description),
        )
        for each in history
    ]  # fmt: skip
    return group(
        "Identification_Area", leaf("logical_identifier", lidvid.lid), leaf("version_id", lidvid.vid),
        leaf("title", short_text(title)), leaf("information_model_version", standard.version),
        leaf("product_class", kind), None if citation is None else _citation(citation, standard),
        group("Modification_History", changes) if changes else None,
    )  # fmt: skip


def short_text(text: str, longest: int = 255) -> str:
    """Return a text on one line that titles and names have room for."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


def _citation(citation: CitationInformation, standard: Standard) -> LabelElement:
    before, after = authors(citation.authors, standard)
    return group(
        "Citation_Information", before,
        leaf("publication_year", citation.year), leaf("doi", citation.doi),
        (leaf("keyword", each) for each in citation.keywords), leaf("description", citation.description),
        after,
    )  # fmt: skip


def authors(names: str, standard: Standard) -> tuple[LabelElement | None, LabelElement | None]:
    """Return `Name, Given; Name, Given` as one text, and as a list; only what the standard has."""
    if not standard.lists_authors:
        return leaf("author_list", names), None
    listed = [each.strip() for each in names.split(";") if each.strip()]
    groups = [_author(each) for each in listed]
    organisations = [each for each in groups if each.tag == "Organization"]
    people = [each for each in groups if each.tag == "Person"]
    return None, group("List_Author", organisations, people) if listed else None


def _author(name: str) -> LabelElement:
    """Return a person; who has no given name after a comma is an organisation."""
    family, comma, given = (part.strip() for part in name.partition(","))
    if not comma or not given:
        return group("Organization", leaf("organization_name", ascii_text(name)))
    return group("Person", leaf("given_name", ascii_text(given)), leaf("family_name", ascii_text(family)))


def context_area(context: ProductContext, kind: str) -> LabelElement | None:
    """Return the area of what a product is of; None if nothing is said, which not every product may do."""
    observed = kind == "Product_Observational"
    subject = SUBJECTS[kind]
    area = group(
        "Observation_Area" if observed else "Context_Area",
        leaf("comment", ascii_text(context.comment)), _times(context, observed), _summary(context),
        (_investigation(each, subject) for each in context.investigations), _system(context),
        (_target(each, subject) for each in context.targets),
        group("Discipline_Area", context.disciplines) if context.disciplines else None,
    )  # fmt: skip
    return area if observed or area.content else None


def _times(context: ProductContext, observed: bool) -> LabelElement | None:
    names = ("start_date_time", "stop_date_time")
    if context.times is None:
        return group("Time_Coordinates", *(nil(name) for name in names)) if observed else None
    pairs = zip(names, context.times, strict=True)
    return group("Time_Coordinates", *(leaf(name, time) for name, time in pairs))


def _summary(context: ProductContext) -> LabelElement | None:
    if not context.levels:
        return None
    levels = (leaf("processing_level", level) for level in context.levels)
    return group("Primary_Result_Summary", leaf("purpose", context.purpose), levels)


def _refer(subject: LabelSubject, type: str) -> LabelElement | None:
    if subject.lid is None:
        return None
    return LabelReference(subject.lid, type, subject.comment).element()


def _investigation(subject: LabelSubject, begin: str) -> LabelElement:
    return group(
        "Investigation_Area", leaf("name", subject.name), leaf("type", subject.type),
        _refer(subject, f"{begin}_to_investigation"),
    )  # fmt: skip


def _system(context: ProductContext) -> LabelElement | None:
    if not context.system:
        return None
    parts = (
        group(
            "Observing_System_Component", leaf("name", each.name), leaf("type", each.type),
            leaf("description", each.description),
            _refer(each, _INSTRUMENT if each.type == "Instrument" else _HOST),
        )
        for each in context.system
    )  # fmt: skip
    return group("Observing_System", parts)


def _target(subject: LabelSubject, begin: str) -> LabelElement:
    return group(
        "Target_Identification", leaf("name", subject.name), leaf("type", subject.type),
        _refer(subject, f"{begin}_to_target"),
    )  # fmt: skip


def reference_list(references: Iterable[LabelReference]) -> LabelElement | None:
    """Return the list of what a product refers to; None if that is nothing."""
    found = [each.element() for each in references]
    return group("Reference_List", found) if found else None
