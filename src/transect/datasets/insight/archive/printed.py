"""The label of SIS appendix E as printed, for a table of the same fields.

Its errors, which are corrected in the default labels:

- the referenced `urn:nasa:pds:insight_ida:document:insight_ida_bundle_sis` does not exist (see 4.5);
- the lander is called `InSight Lander` instead of its registered name;
- the file has no size, checksum and time of creation;
- counts of the spacecraft clock have no partition, which 3.3.1 requires;
- only one of the pair of sols is given (3.3.1);
- the unit of the angles `th_*` is m, and that of `htr_cur` mA instead of A (5.1.1);
- `encoder counts` are angles, two descriptions are truncated, and the forces are not distinguished;
- no processing level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transect.archive.identifiers import Lid
from transect.archive.labels.areas import LabelReference, LabelSubject, ProductContext, context_area
from transect.archive.labels.disciplines import Mission
from transect.archive.labels.objects import CRLF, HeaderObject, TableField, TableObject
from transect.archive.labels.products import LabelVersion, WrittenFile
from transect.archive.standard import INSIGHT_STANDARD
from transect.archive.xml import LabelElement, document_text, group, leaf
from transect.datasets.insight.products.columns import FORCES
from transect.datasets.insight.products.names import ProductName, sclk_text

from .products import ARM, BUNDLE, INVALID, LANDER, MARS, MISSION, PHASE, ProductSpan, data_type, printed_unit

LID = BUNDLE.child("document").child("insight_ida_bundle_sis")
SITE = "http://pds.nasa.gov/pds4"
TITLES = {"SciHi": "IDA Science High Data Product", "SciLo": "IDA Science Low Data Product"}
JOINTS = {
    "enc": "Joint {} encoder counts", "pot": "Joint {} potentiometer measurement",
    "tcase": "Joint {} measured motor case temp", "trotor": "Joint {} computed motor rotor temp",
    "cur": "Joint {} motor currents", "volt": "Joint {} motor voltages", "v": "joint {} velocity",
    "tau": "joint {} torque",
}  # fmt: skip
OTHERS = {
    "time": "time", "elapsed_time": "time readings recorded", "tgrapple": "grapple motor temperature",
    "stat": "bit-mapped status word", "tool": "currently selected tool",
    **dict.fromkeys(FORCES, "force at tool in cylindrical coordinates"),
    "htr_cur": "sum of heater currents", "grapple_phase": "grapple phase",
    "pot4": "Join 4 potentiometer measurement [RA_DOF]", "tcase4": "Joint 4",
}  # fmt: skip
READINGS = {"enc": "joint encoder readings", "pot": "joint potentiometer readings"}


def printed_label(
    name: ProductName, span: ProductSpan, device: str
) -> Callable[[LabelVersion, Sequence[WrittenFile]], str]:
    """Return the function that writes the label of a written table."""

    def render(version: LabelVersion, files: Sequence[WrittenFile]) -> str:
        [file] = files
        lid = BUNDLE.child("data_raw_calibrated").child(name.identifier)
        root = group(
            "Product_Observational", _identification(lid, version, device, span),
            _observation(name, span, device),
            group("Reference_List", LabelReference(LID, "data_to_document").element()), _file_area(file),
        )  # fmt: skip
        instructions = [
            f'xml-model href="{SITE}/{folder}/v1/{file}.sch" schematypens="http://purl.oclc.org/dsdl/schematron"'
            for folder, file in (
                ("pds", INSIGHT_STANDARD.core),
                ("msn", INSIGHT_STANDARD.dictionaries["msn"]),
            )
        ]
        return document_text(
            LabelElement(root.tag, root.content, INSIGHT_STANDARD.attributes({"msn"})), instructions
        )

    return render


def _identification(lid: Lid, version: LabelVersion, device: str, span: ProductSpan) -> LabelElement:
    return group(
        "Identification_Area", leaf("logical_identifier", lid), leaf("version_id", version.vid),
        leaf("title", TITLES[device]), leaf("information_model_version", INSIGHT_STANDARD.version),
        leaf("product_class", "Product_Observational"),
        group(
            "Citation_Information", leaf("publication_year", span.utc[0][:4]),
            leaf("description", TITLES[device]),
        ),
    )  # fmt: skip


def _observation(name: ProductName, span: ProductSpan, device: str) -> LabelElement | None:
    counts = tuple(sclk_text(t_ns, None, whole=True) for t_ns in (span.start_ns, span.stop_ns))
    mission = Mission(PHASE, f"IDA {device}", (counts[0], counts[1]), sols=(name.start_sol, None)).element()
    said = "This is the PDS4 logical identifier for the InSight {}."
    lander = LabelSubject("InSight Lander", "Spacecraft", LANDER.lid, said.format("Lander spacecraft"))
    investigation = LabelSubject(MISSION.name, MISSION.type, MISSION.lid, said.format("mission"))
    start, stop = (f"{time[:23]}Z" for time in span.utc)
    context = ProductContext(
        (start, stop), (), "", (investigation,), (lander, ARM), (MARS,), (mission,) if mission else ()
    )
    return context_area(context, "Product_Observational")


def _file_area(file: WrittenFile) -> LabelElement:
    header, table = file.objects
    assert isinstance(header, HeaderObject)
    assert isinstance(table, TableObject)
    return group(
        "File_Area_Observational",
        group("File", leaf("file_name", file.name), leaf("local_identifier", "file")),
        group(
            "Header", leaf("offset", 0, unit="byte"), leaf("object_length", header.length, unit="byte"),
            leaf("parsing_standard_id", "7-Bit ASCII Text"), leaf("description", "Column headings"),
        ),
        group(
            "Table_Delimited", leaf("local_identifier", "TABLE"), leaf("offset", table.offset, unit="byte"),
            leaf("parsing_standard_id", "PDS DSV 1"), leaf("records", table.records),
            leaf("record_delimiter", CRLF), leaf("field_delimiter", "Comma"),
            group(
                "Record_Delimited", leaf("fields", len(table.fields)), leaf("groups", 0),
                (_field(each) for each in table.fields if isinstance(each, TableField)),
            ),
        ),
    )  # fmt: skip


def _field(each: TableField) -> LabelElement:
    invalid = leaf("invalid_constant", INVALID)
    return group(
        "Field_Delimited", leaf("name", each.name), leaf("data_type", data_type(each.name)),
        leaf("unit", printed_unit(each.name)), leaf("description", describe(each.name)),
        group("Special_Constants", invalid) if each.name in FORCES else None,
    )  # fmt: skip


def describe(name: str) -> str:
    """Return the printed description of a field in appendix E."""
    if name in OTHERS:
        return OTHERS[name]
    if name[:-1] in JOINTS:
        return f"{JOINTS[name[:-1]].format(name[-1])} [RA_DOF]"
    axis, _, how = name.partition("_")
    sensor, _, deflected = how.partition("_")
    readings = READINGS.get(sensor, "")
    bent = "deflected " if deflected else ""
    if axis == "th":
        return f"{bent}orientation of tool in IDA frame using {readings}"
    letter = axis.upper() if how == "enc" else axis
    return f"{letter} {bent}location of tool as Cartesian coordinates in IDA frame using {readings}"
