"""The bundle that a file describes: streams, results, circumstances, documents, context, in collections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from transect.errors import did_you_mean
from transect.recording import Recording, Stream
from transect.types import Image
from transect.types.provenance import SourceFile

from ..bundle import Bundle, BundleProduct, Collection, CollectionType, ProductDocument, ProductFile
from ..contents.files import DOCUMENTS, CopiedFile, TextLines
from ..context import ContextObject, ContextRegistry, resolve
from ..identifiers import Lid, Lidvid, Vid, identifier_parts, product_part
from ..labels.areas import (
    CitationInformation,
    LabelReference,
    LabelSubject,
    ProductContext,
    short_text,
    utc_text,
)
from ..labels.disciplines import Mission, geometry, processing
from .config import ArchiveConfig, DocumentText, StreamText, date_text
from .results import ArchivedResult, SkippedResult
from .streams import FilePlacement, default_level, stream_products
from .supplements import (
    browse_products,
    cameras_product,
    description_product,
    frames_product,
    sources_product,
    static_frames,
)

NOT_FOR_SUBMISSION = (
    "NOT FOR SUBMISSION: the identifiers begin with a stand-in, because nobody has named an authority yet."
)
SIMULATED = "Simulated: no sensor measured this."
MAX_LISTED_SOURCES = 16
"""Largest number of source files listed in a label."""
REGISTERED = "urn:nasa:pds:context:"
"""Prefix of identifiers of registered context products."""
_DATA = {
    "Raw": "data_raw", "Partially Processed": "data_partially_processed", "Calibrated": "data_calibrated",
    "Derived": "data_derived",
}  # fmt: skip
"""Collections of data by processing level (InSight SIS, Table 5)."""
_TITLES: dict[str, tuple[CollectionType, str]] = {
    "data_raw": ("Data", "raw data"),
    "data_partially_processed": ("Data", "partially processed data"),
    "data_calibrated": ("Data", "calibrated data"),
    "data_derived": ("Data", "derived data"),
    "browse": ("Browse", "pictures to look at"),
    "calibration": ("Calibration", "calibration of the cameras"),
    "geometry": ("Geometry", "where the sensors are"),
    "document": ("Document", "documents"),
    "context": ("Context", "what the data is of"),
    "miscellaneous": ("Miscellaneous", "how the archive was made"),
}


@dataclass(frozen=True)
class Material:
    """The inputs of an archive: a recording, results, or both; and losses."""

    recording: Recording | None = None
    results: tuple[ArchivedResult, ...] = ()
    left_out: tuple[SkippedResult, ...] = ()


def make_bundle(
    config: ArchiveConfig, material: Material, registry: ContextRegistry
) -> tuple[Bundle, list[str]]:
    """Return the bundle that a file describes, of what it names, and notes for the user of it.

    Raises
    ------
    ParseError
        That names the line, for a stream or a file that does not exist.
    """
    maker = _BundleAssembler(config, material, registry)
    return maker.bundle(), maker.notes


class _BundleAssembler:
    """Collects the products of one bundle."""

    def __init__(self, config: ArchiveConfig, material: Material, registry: ContextRegistry) -> None:
        self.config, self.said, self.material = config, config.said, material
        self.lid = Lid(f"{self.said.prefix}:{self.said.bundle.name}")
        self.members: dict[str, list[BundleProduct]] = {name: [] for name in _TITLES}
        self.created = date_text(self.said.created)
        self.secondary: set[Lid] = set()
        self._check_streams()
        self.common, self.instruments = self._context(registry)
        self.placed: dict[str, Lid] = {}
        self.notes = [str(each) for each in material.left_out]

    def bundle(self) -> Bundle:
        """Return the bundle; miscellaneous comes last, since only then all files were read."""
        recording = self.material.recording
        if recording is not None:
            self._circumstances(recording)
            self._streams(recording)
        self._results()
        self._documents()
        self._sources(recording)
        said = self.said.bundle
        citation = CitationInformation(
            said.description or said.title, said.year or int(self.created[:4]), said.authors, said.doi,
            tuple(said.keywords),
        )  # fmt: skip
        marks = ["simulated"] * self.said.simulated + ["not for submission"] * self.said.is_stand_in
        title = f"{said.title} ({', '.join(marks)})" if marks else said.title
        return Bundle(
            self.lid, short_text(title), tuple(self._collections()), self.created,
            said.description or said.title, self._readme(), citation=citation,
            vid=Vid.parse(said.vid) if said.vid else None,
        )  # fmt: skip

    # Context

    def _context(self, registry: ContextRegistry) -> tuple[ProductContext, dict[str, LabelSubject]]:
        """Return what all products are of, and the instruments by the patterns of their streams."""
        said = self.said
        first = self._first_day()
        invest = said.investigation
        start = date_text(invest.start) or first
        subjects = {
            "investigation": ContextObject(
                "investigation", invest.name, invest.type, invest.description, _lid(invest.lid), start,
                date_text(invest.stop),
            ),
            "host": ContextObject(
                "instrument_host", said.host.name, said.host.type, said.host.description, _lid(said.host.lid)
            ),
            "target": ContextObject(
                "target", said.target.name, said.target.type, said.target.description, _lid(said.target.lid)
            ),
        }  # fmt: skip
        found = {name: self._resolve(each, registry, name) for name, each in subjects.items()}
        instruments = {
            pattern: self._resolve(
                ContextObject("instrument", each.name, "Instrument", each.description, _lid(each.lid)),
                registry,
                "instruments",
                number,
            )
            for number, each in enumerate(said.instruments)
            for pattern in each.streams
        }
        context = ProductContext(
            purpose=said.purpose, investigations=(found["investigation"],), system=(found["host"],),
            targets=(found["target"],), comment=SIMULATED if said.simulated else "",
        )  # fmt: skip
        return context, instruments

    def _resolve(self, said: ContextObject, registry: ContextRegistry, *where: str | int) -> LabelSubject:
        """Return what labels call something; its own product is kept, or it is a secondary member."""
        if said.lid and registry.path and not registry.get(said.lid) and said.lid.text.startswith(REGISTERED):
            hint = did_you_mean(said.lid.text, [each.lid.text for each in registry.products])
            raise self.config.error(f"{said.lid} is not registered", *where, "lid", hint=hint)
        subject, product = resolve(said, registry, self.lid.child("context"))
        if product is not None:
            self.members["context"].append(product)
        elif subject.lid is not None:
            self.secondary.add(subject.lid)
        return subject

    def _first_day(self) -> str:
        recording = self.material.recording
        span = recording.spans().get("utc") if recording is not None else None
        return utc_text(span[0])[:10] if span else self.created[:10]

    def _context_for(self, stream: Stream) -> ProductContext:
        """Return the context of a stream: the robot, and the instruments that gave it."""
        found = [each for pattern, each in self.instruments.items() if _matches(stream.name, pattern)]
        system = (*self.common.system, *dict.fromkeys(found))
        return replace(self.common, system=system)

    # Data

    def _check_streams(self) -> None:
        """Reject what is said of streams that are not there."""
        recording = self.material.recording
        names = [each.name for each in recording.streams] if recording is not None else []
        names += [each.stream.name for each in self.material.results]
        for name in self.said.streams:
            if name not in names:
                hint = did_you_mean(name, names)
                raise self.config.error(f"there is no stream {name!r}", "streams", name, hint=hint)
        for number, each in enumerate(self.said.instruments):
            for pattern in each.streams:
                if not any(_matches(name, pattern) for name in names):
                    what, hint = f"no stream matches {pattern!r}", did_you_mean(pattern, names)
                    raise self.config.error(what, "instruments", number, "streams", hint=hint)

    def _streams(self, recording: Recording) -> None:
        chosen = [each for each in recording.streams if not self._text(each).skip]
        frames = {each.name: each for each in static_frames(recording)}
        inputs = [self.lid.child("miscellaneous").child("sources")] if recording.sources else []
        for stream, stem in zip(chosen, identifier_parts(each.name for each in chosen), strict=True):
            where = frames.get(stream.frame)
            lineage = processing(replace(recording.provenance, parameters=recording.options), inputs)
            place = None if where is None else geometry([where], (), "The sensor's frame")
            self._place(stream, stem, (lineage, *([place] if place else [])))

    def _place(
        self, stream: Stream, stem: str, disciplines: Sequence[object], times: tuple[str, str] | None = None
    ) -> None:
        """Make the products of a stream, and put them where its level belongs; PDS4 has no empty tables."""
        if not len(stream):
            self.notes.append(f"{stream.name} has no samples, and so no product")
            return
        text = self._text(stream)
        level = text.level or default_level(stream)
        name = _DATA[level]
        mission = Mission(self.said.mission.phase, sols=_sols(self.said.mission))
        elements = tuple(each for each in (mission.element(), *disciplines) if each is not None)
        context = replace(self._context_for(stream), levels=(level,), disciplines=elements)  # pyright: ignore[reportArgumentType]
        placement = FilePlacement(
            self.lid.child(name), stem, context, text.title, text.description, self._references(stream),
            {column: each.format for column, each in text.columns.items() if each.format},
            {column: each.description for column, each in text.columns.items() if each.description},
            text.every, vid=Vid.parse(text.vid) if text.vid else None,
        )  # fmt: skip
        self._check_columns(stream, text)
        made = list(stream_products(stream, placement))
        if times is not None:
            made = [
                each if each.context.times else replace(each, context=replace(each.context, times=times))
                for each in made
            ]
        self.members[name] += made
        self.placed[stream.name] = made[-1].lid
        if stream.type is Image and self.said.browse:
            self.members["browse"] += browse_products(
                stream, made, self.lid.child("browse"), self.said.browse, text.every
            )

    def _check_columns(self, stream: Stream, text: StreamText) -> None:
        for column in text.columns:
            if column not in stream.columns:
                what, hint = f"{stream.name} has no column {column!r}", did_you_mean(column, stream.columns)
                raise self.config.error(what, "streams", stream.name, "columns", column, hint=hint)

    def _text(self, stream: Stream) -> StreamText:
        return self.said.streams.get(stream.name) or StreamText()

    def _references(self, stream: Stream) -> tuple[LabelReference, ...]:
        """Return what a product refers to: the description, the frames, and the calibration of images."""
        names = [("document", "description", "data_to_document"), ("geometry", "frames", "data_to_geometry")]
        if stream.type is Image:
            names.append(("calibration", "cameras", "data_to_calibration_product"))
        return tuple(
            LabelReference(lid, type)
            for collection, name, type in names
            for lid in [self.lid.child(collection).child(name)]
            if any(each.lid == lid for each in self.members[collection])
        )

    # Results

    def _results(self) -> None:
        results = [each for each in self.material.results if not self._text(each.stream).skip]
        stems = identifier_parts(each.stream.name for each in results)
        described: dict[str, Lid] = {}
        for result, stem in zip(results, stems, strict=True):
            lineage = processing(result.provenance, self._inputs(result, described))
            times = result.times_ns
            span = (utc_text(times[0]), utc_text(times[1])) if times else None
            self._place(result.stream, stem, (lineage,), span)

    def _inputs(self, result: ArchivedResult, described: dict[str, Lid]) -> Iterator[Lid | Lidvid | str]:
        """Yield what a result was made of: products of this bundle, else files; and the compound."""
        for name in result.inputs:
            if name in self.placed:
                yield self.placed[name]
        if not any(name in self.placed for name in result.inputs):
            for source in result.sources[:MAX_LISTED_SOURCES]:
                yield f"{source.path}, {source.size} bytes, sha256 {source.sha256}"
        if text := result.description:
            if text not in described:
                described[text] = self._compound(result, len(described) + 1)
            yield described[text]

    def _compound(self, result: ArchivedResult, number: int) -> Lid:
        """Keep the description of a compound as text; return what it is called."""
        collection = self.lid.child("miscellaneous")
        called = str(result.provenance.parameters.get("compound", "")) or "compound"
        name = f"compound_{number}"
        about = f"Description of {called}, as YAML"
        file = ProductFile(f"{name}.txt", TextLines(result.description, about))
        lid = collection.child(name)
        self.members["miscellaneous"].append(
            BundleProduct(lid, short_text(about), (file,), "Product_Ancillary", self.common)
        )
        return lid

    # Circumstances and documents

    def _circumstances(self, recording: Recording) -> None:
        place = self.lid.child
        found = {
            "geometry": frames_product(recording, place("geometry"), self.common),
            "calibration": cameras_product(recording, place("calibration"), self.common),
            "document": description_product(
                recording, place("document"), self.common, self.created[:10]
            ),
        }  # fmt: skip
        for name, product in found.items():
            if product is not None:
                self.members[name].append(product)

    def _documents(self) -> None:
        for number, text in enumerate(self.said.documents):
            path = self.config.path(text.file)
            if not path.is_file():
                raise self.config.error(f"{text.file} is not there", "documents", number, "file")
            folder = self.config.file.resolve().parent
            if not path.resolve().is_relative_to(folder):
                raise self.config.error(
                    f"{text.file} is outside the folder of {self.config.file.name}",
                    "documents", number, "file",
                    hint=f"a bundle is published; what belongs to it: cp {path.resolve()} {folder}",
                )  # fmt: skip
            self.members["document"].append(self._document(text, path))

    def _document(self, text: DocumentText, path: Path) -> BundleProduct:
        standard = DOCUMENTS[path.suffix.lower()]
        said = ProductDocument(
            text.description or text.title, (standard,), date_text(text.date), text.authors, text.title
        )
        lid = self.lid.child("document").child(product_part(path.name))
        file = ProductFile(path.name, CopiedFile(path))
        return BundleProduct(
            lid, short_text(text.title), (file,), "Product_Document", self.common, document=said
        )

    def _sources(self, recording: Recording | None) -> None:
        def gather() -> list[SourceFile]:
            found = {each for result in self.material.results for each in result.sources}
            found |= set(_files_of(recording)) if recording is not None else set()
            return sorted(found, key=lambda file: file.path)

        if self.material.results or (recording is not None and recording.sources):
            product = sources_product(gather, self.lid.child("miscellaneous"), self.common)
            self.members["miscellaneous"].append(product)

    # The whole

    def _collections(self) -> Iterator[Collection]:
        title = self.said.bundle.title
        for name, (type, words) in _TITLES.items():
            secondary = tuple(sorted(self.secondary)) if name == "context" else ()
            if self.members[name] or secondary:
                about = f"{title}: {words}"
                yield Collection(
                    self.lid.child(name), type, short_text(about), self.members[name], secondary, about,
                    self.common if name in ("miscellaneous", "context") else None,
                )  # fmt: skip

    def _readme(self) -> str:
        said = self.said
        lines = [NOT_FOR_SUBMISSION, ""] if said.is_stand_in else []
        lines += [SIMULATED, ""] if said.simulated else []
        lines += [said.bundle.title, "=" * len(said.bundle.title), "", said.readme or said.bundle.description]
        lines += ["", f"Identifier: {self.lid}", f"Authors: {said.bundle.authors or 'not named'}", ""]
        lines += ["Collections:"]
        for name, (_, words) in _TITLES.items():
            if self.members[name]:
                lines.append(f"  {name}/ ({len(self.members[name])} products): {words}")
        return "\n".join(lines)


def _files_of(recording: Recording) -> tuple[SourceFile, ...]:
    """Return the files that were read of a recording; all that it has if its reader does not tell."""
    known = recording.provenance.sources
    return known or tuple(
        SourceFile(name, source.size(name), source.sha256(name))
        for source in recording.sources
        for name in source.names
    )


def _lid(text: str) -> Lid | None:
    return Lid(text) if text else None


def _sols(mission: object) -> tuple[int, int | None] | None:
    first = getattr(mission, "start_sol", None)
    return None if first is None else (first, getattr(mission, "stop_sol", None))


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name.lower(), pattern.lower())
