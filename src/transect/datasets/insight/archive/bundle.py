"""The bundle of a recording of the arm: products of its files in the collections of SIS Table 10."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import cast

from transect.archive.assembly.config import ArchiveConfig, date_text
from transect.archive.bundle import (
    Bundle,
    BundleProduct,
    Collection,
    CollectionType,
    ProductDocument,
    ProductFile,
)
from transect.archive.contents.files import TextLines
from transect.archive.identifiers import Vid, product_part
from transect.archive.labels.areas import CitationInformation, LabelReference, ProductContext, utc_text
from transect.archive.standard import INSIGHT_STANDARD
from transect.base.clocks import NS
from transect.datasets.insight.products import names
from transect.datasets.insight.products.names import (
    APIDS,
    ProductName,
    Products,
    parse_name,
    sort_products,
    utc_from_sclk,
)
from transect.errors import UnsupportedError, UsageError
from transect.recording import Recording, Source
from transect.recording.arrow import PAYLOAD

from .printed import printed_label
from .products import (
    ARM,
    BUNDLE,
    CAMERAS,
    DOCUMENTS,
    LANDER,
    MARS,
    MISSION,
    SIS,
    CoordinateTable,
    FileCopy,
    Photograph,
    ProductSpan,
    ScienceTable,
    arm_context,
)

SCIENCE, ANCILLARY, CAMERA, VIDEO = (
    BUNDLE.child(name) for name in ("data_raw_calibrated", "data_ancillary", "data_camera", "document_video")
)
"""The collections of Table 10, and one for pictures, which Table 10 lacks."""
TITLES = {
    "SciHi": "IDA Science High Data Product", "SciLo": "IDA Science Low Data Product", "Status": "IDA Status",
    "History": "IDA History", "Parameters": "IDA Parameters",
}  # fmt: skip
PRODUCTS = {"status": (89, names.ARM_FLOAT), "history": (85, names.SYSTEM_FLOAT),
            "parameters": (86, names.PARAMETERS), "science": (87, names.SCIENCE)}  # fmt: skip
"""Application identifier and product of files without product names."""
_TIMED = (
    "Arm/SciHi",
    "Arm/SciLo",
    "Arm/Status",
    "System/Status",
    "History/Arm/Status",
    "History/System/Status",
)
TITLE = "InSight IDA Bundle"
LANDING = "2018-11-26T19:52:59Z"
SIMULATED = "Simulated: not data of InSight, and not for submission. "


@dataclass(frozen=True)
class ArmRecording:
    """A recording of the arm, and options of its labels."""

    recording: Recording
    source: Source
    created: str
    printed: bool = False  # whether labels of tables are those printed in appendix E

    @staticmethod
    def of(recording: Recording, created: str, printed: bool = False) -> ArmRecording:
        """Return a recording of the arm; others are an UnsupportedError."""
        if recording.format != "ida" or recording.source is None:
            raise UnsupportedError(
                f"{recording.name} is no recording of InSight's arm", why=f"its format is {recording.format}",
                hint="`transect export --format ida` writes one",
            )  # fmt: skip
        return ArmRecording(recording, recording.source, created, printed)

    @property
    def simulated(self) -> bool:
        """Whether the data are simulated, by the conditions or by a parameter set of that name."""
        known = self.recording.conditions
        return bool(known.get("simulated")) or "SIMULATION" in known.get("parameters", {})

    @property
    def title(self) -> str:
        """Title of the bundle."""
        return f"{TITLE} (simulated)" if self.simulated else TITLE

    @property
    def comment(self) -> str:
        """Comment in the labels of simulated data."""
        return SIMULATED.strip() if self.simulated else ""

    def cited(self, title: str) -> CitationInformation:
        """Return the citation of a part of the archive."""
        return CitationInformation(f"{self.comment} {title}".strip(), int(self.created[:4]))


def arm_bundle(
    recording: Recording,
    created: str = "",
    citation: CitationInformation | None = None,
    vid: Vid | None = None,
    *,
    as_printed: bool = False,
) -> Bundle:
    """Return the archive of a recording of the arm.

    Parameters
    ----------
    recording : Recording
        Of the format `ida`.
    created : str
        UTC of the archive; "": end of the recording.
    vid : Vid or None
        Requested version.
    as_printed : bool
        Give tables the printed label of appendix E with its errors, instead of a valid one.

    Raises
    ------
    UnsupportedError
        If the recording does not come from files of the arm.
    """
    arm = ArmRecording.of(recording, created or last_moment(recording), as_printed)
    files = sort_products(arm.source)
    collections = [each for each in _collections(arm, files) if each.members]
    said = SIMULATED if arm.simulated else ""
    return Bundle(
        BUNDLE, arm.title, tuple(collections), arm.created,
        f"{said}IDA raw and calibrated data, status, history and parameters, and videos of data acquisition.",
        _readme(said, collections), ((DOCUMENTS, "Document"),), citation=citation or arm.cited(arm.title),
        standard=INSIGHT_STANDARD, vid=vid,
    )  # fmt: skip


def _collections(arm: ArmRecording, files: Products) -> Iterator[Collection]:
    spans = dict(_spans(arm.recording))
    ancillary = [*_ancillary(arm, files, spans), *_coordinates(arm, spans)]
    for lid, kind, title, about, members in (
        (ANCILLARY, "Data", "Ancillary Data", "IDA status, history, and parameters", ancillary),
        (SCIENCE, "Data", "Raw and Calibrated Data", "Hybrid raw and calibrated IDA data products",
         list(_science(arm, files, spans))),
        (CAMERA, "Data", "Camera", "Raw images of the arm's and the context camera",
         list(_pictures(arm))),
        (VIDEO, "Document", "Video", "Time-lapse videos of data acquisition", list(_videos(arm, files))),
    ):  # fmt: skip
        full = f"InSight IDA {title} Collection"
        yield Collection(
            lid, cast("CollectionType", kind), full, members, description=f"{arm.comment} {about}".strip(),
            citation=arm.cited(full),
        )  # fmt: skip


def _spans(recording: Recording) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the first and last time of each file on the spacecraft clock, ns."""
    found: dict[str, tuple[int, int]] = {}
    for name in _TIMED:
        if name in recording:
            stream = recording[name]
            for file, t_ns in zip(stream.column("file"), stream.t_ns.tolist(), strict=True):
                first, last = found.get(file, (t_ns, t_ns))
                found[file] = min(first, t_ns), max(last, t_ns)
    for file, about in recording.conditions.get("parameter_files", {}).items():
        if about["time_ns"] is not None:
            found[file] = about["time_ns"], about["time_ns"]
    yield from found.items()


def last_moment(recording: Recording) -> str:
    """Return the end of a recording in UTC; the landing if it has no times."""
    span = recording.spans().get("sclk")
    return f"{utc_text(utc_from_sclk(span[1]))[:19]}Z" if span else LANDING


Spans = Mapping[str, tuple[int, int]]


def _name_file(file: str, kind: str, spans: Spans) -> tuple[ProductName, ProductSpan]:
    """Return the name of a file by SIS 4.1.3, new if necessary, and its times."""
    name, times = parse_name(file), spans.get(file)
    if name is None:
        times = times or (0, 0)
        return names.new_name(*PRODUCTS[kind], times), ProductSpan(*times)
    return name, ProductSpan.of(name, *(times or (name.start_sclk * NS, name.end_sclk * NS)))


def _science(arm: ArmRecording, files: Products, spans: Spans) -> Iterator[BundleProduct]:
    for file in (each for each in files.science if each in spans):  # a table needs a record
        name, span = _name_file(file, "science", spans)
        device = APIDS.get(name.apid, "SciHi")
        levels = ("Raw", "Calibrated")
        context = arm_context(f"IDA {device}", span, name.start_sol, levels, "Science", arm.comment)
        yield BundleProduct(
            SCIENCE.child(name.identifier), TITLES[device],
            (ProductFile(str(name), ScienceTable(arm.source, file)),), context=context,
            references=(LabelReference(SIS, "data_to_document"),),
            citation=arm.cited(TITLES[device]), label=f"{name.identifier}.xml",
            render=printed_label(name, span, device) if arm.printed else None,
        )  # fmt: skip


def _ancillary(arm: ArmRecording, files: Products, spans: Spans) -> Iterator[BundleProduct]:
    for kind in ("status", "history", "parameters"):
        for file in getattr(files, kind):
            name, span = _name_file(file, kind, spans)
            title = TITLES[kind.capitalize()]
            context = arm_context(title, span, name.start_sol, ("Derived",), "Engineering", arm.comment)
            text = TextLines(arm.source.text(file), title)
            yield BundleProduct(
                ANCILLARY.child(name.identifier), title, (ProductFile(str(name), text),), "Product_Ancillary",
                context, citation=arm.cited(title), label=f"{name.identifier}.xml",
            )  # fmt: skip


def _coordinates(arm: ArmRecording, spans: Spans) -> Iterator[BundleProduct]:
    """Yield the product of SIS 5.1.4, if the recording has it."""
    place = arm.recording.conditions.get("sc_coordinates")
    if place is None:
        return
    start = min((first for first, _ in spans.values()), default=0)
    stop = max((last for _, last in spans.values()), default=0)
    title, span = "IDA Position in Spacecraft Coordinates", ProductSpan(start, stop)
    context = arm_context(title, span, span.sol, ("Derived",), "Engineering", arm.comment)
    yield BundleProduct(
        ANCILLARY.child(product_part(names.COORDINATES)), title,
        (ProductFile(names.COORDINATES, CoordinateTable(place)),), "Product_Ancillary", context,
        citation=arm.cited(title),
    )  # fmt: skip


def _pictures(arm: ArmRecording) -> Iterator[BundleProduct]:
    """Yield the pictures of both cameras as arrays."""
    for camera in (name for name in CAMERAS if name in arm.recording):
        instrument = CAMERAS[camera]
        for number, sample in enumerate(arm.recording[camera]):
            span = ProductSpan(sample.t_ns, sample.t_ns)
            plain = names.PictureName(camera, max(0, span.sol), sample.t_ns // NS).numbered(number)
            name = names.picture_stem(str(sample.row.get(PAYLOAD, ""))) or names.picture_stem(plain)
            title = f"{instrument.name} Raw Image"
            yield BundleProduct(
                CAMERA.child(name.lower()), title, (ProductFile(f"{name}.IMG", Photograph(sample)),),
                context=arm_context(
                    f"{camera} EDR", span, span.sol, ("Raw",), comment=arm.comment, instrument=instrument
                ),
                citation=arm.cited(title), label=f"{name.lower()}.xml",
            )  # fmt: skip


def _videos(arm: ArmRecording, files: Products) -> Iterator[BundleProduct]:
    """Yield the videos beside the data (SIS 5.1.7)."""
    about = ProductContext(
        investigations=(MISSION,), system=(LANDER, ARM), targets=(MARS,), comment=arm.comment
    )
    for file in files.others:
        path = PurePosixPath(file)
        if path.suffix.lower() == ".mp4":
            part, title = product_part(path.name), f"IDA RSVP Replay {path.stem}"
            document = ProductDocument(
                "Video of IDA activities, H.264 without sound", ("MPEG-4",), name=title
            )
            video = ProductFile(f"{part}.mp4", FileCopy(arm.source, file))
            yield BundleProduct(
                VIDEO.child(part), title, (video,), "Product_Document", about, citation=arm.cited(title),
                document=document,
            )  # fmt: skip


def _readme(said: str, collections: Iterable[Collection]) -> str:
    listed = "\n".join(f"  {each.lid.name}: {each.title}" for each in collections)
    return (
        f"InSight Instrument Deployment Arm (IDA) bundle\n\n{f'{said.strip()}' if said else ''}\n\n"
        f"Collections\n{listed}\n  {DOCUMENTS}: documents, a secondary member\n\n"
        "Labels give counts of the spacecraft clock as partition/seconds-ticks; a tick is 1/65536 s.\n"
        "UTC counts from SCLK 615088547 = 2019-06-29T13:56:40.702Z at the rate of UTC: to 3 minutes\n"
        "in the mission, to a second on that day.\n"
    ).replace("\n\n\n\n", "\n\n")


PROFILE = "ida"
"""Value of `profile:` in the configuration."""


def describe(recording: Recording, named: str) -> str:
    """Return the configuration of the archive of a recording with the path `named`."""
    created = last_moment(recording)
    title = ArmRecording.of(recording, created).title
    return f"""\
# What transect archive build makes the bundle of InSight's arm of. Lines that begin with # are remarks.

recording: {json.dumps(named)}
# Collections, names and labels of the InSight SIS. `general` makes a bundle by streams instead; transect
# archive init writes its options for recordings of other robots.
profile: {PROFILE}
authority: {":".join(BUNDLE.parts[:3])}

# When the archive is made, in UTC. Filled in with the end of the recording: no clock is asked, so that
# building twice gives the same bytes.
created: "{created}"

bundle:
  name: {BUNDLE.name}
  title: {title}
  authors: ""  # Doe, Jo; Roe, Ann; A University
  year: {created[:4]}
  doi: ""  # 10.17189/...
  keywords: [InSight, Mars, robotic arm]

# As registered; the profile allows no other values.
investigation: {{name: {MISSION.name}, type: {MISSION.type}, lid: "{MISSION.lid}"}}
host: {{name: {LANDER.name}, type: Lander, lid: "{LANDER.lid}"}}
"""


def make_bundle(config: ArchiveConfig, recording: Recording | None, *, as_printed: bool = False) -> Bundle:
    """Return the bundle of a configuration.

    Raises
    ------
    UsageError
        If the configuration has no recording.
    """
    said = config.said.bundle
    if recording is None:
        raise UsageError("the file names no recording of the arm", where=str(config.file))
    created = date_text(config.said.created)
    title = said.description or said.title
    citation = CitationInformation(
        title, said.year or int(created[:4]), said.authors, said.doi, tuple(said.keywords)
    )
    vid = Vid.parse(said.vid) if said.vid else None
    return arm_bundle(recording, created, citation, vid, as_printed=as_printed)
