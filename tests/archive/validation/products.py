"""Small products and schemas, written by hand, for the tests of validation."""

from __future__ import annotations

from pathlib import Path

from transect.archive.validation.options import ValidationOptions
from transect.archive.validation.problems import ValidationProblem
from transect.archive.validation.validator import validate

NS = "http://pds.nasa.gov/pds4/pds/v1"
MODELS = '<?xml-model href="https://pds.nasa.gov/PDS4_PDS_TEST.sch" schematypens="http://purl.oclc.org/dsdl/schematron"?>'
LABEL = """<?xml version="1.0" encoding="UTF-8"?>
{models}
<{kind} xmlns="{ns}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="{ns} https://pds.nasa.gov/PDS4_PDS_TEST.xsd">
  <Identification_Area>
    <logical_identifier>{lid}</logical_identifier>
    <version_id>{vid}</version_id><title>A test</title>
    <information_model_version>{model}</information_model_version>
  </Identification_Area>
  {body}
</{kind}>
"""
AREA = """<File_Area_Observational>
  <File><file_name>{file}</file_name>{more}</File>
  {parts}
</File_Area_Observational>"""
XSD = f"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="{NS}" xmlns:pds="{NS}"
  elementFormDefault="qualified">
  <xs:element name="Product_Observational"><xs:complexType><xs:sequence>
    <xs:element name="Identification_Area"><xs:complexType><xs:sequence>
      <xs:element name="logical_identifier" type="xs:string"/>
      <xs:element name="version_id"><xs:simpleType><xs:restriction base="xs:string">
        <xs:pattern value="\\d+\\.\\d+"/></xs:restriction></xs:simpleType></xs:element>
      <xs:element name="title" type="xs:string"/>
      <xs:choice minOccurs="1" maxOccurs="1"> </xs:choice>
      <xs:element name="information_model_version" type="xs:string"/>
    </xs:sequence></xs:complexType></xs:element>
    <xs:any minOccurs="0" maxOccurs="unbounded" processContents="skip"/>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>"""
SCH = f"""<sch:schema xmlns:sch="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2">
  <sch:ns uri="{NS}" prefix="pds"/>
  <sch:pattern><sch:rule context="pds:Identification_Area/pds:title">
    <sch:let name="most" value="10"/>
    <sch:assert test="string-length(.) le $most">The title <sch:value-of select="."/> is long.</sch:assert>
  </sch:rule></sch:pattern>
  <sch:pattern><sch:rule context="pds:version_id" role="warning">
    <sch:assert test=". ne '0.1'">A draft.</sch:assert></sch:rule></sch:pattern>
  <sch:pattern><sch:rule context="pds:version_id"><sch:assert test=". ne '9.9'">Nine.</sch:assert></sch:rule>
    <sch:rule context="pds:Identification_Area/*"><sch:assert test=". ne '9.9'">Any.</sch:assert></sch:rule>
  </sch:pattern>
</sch:schema>"""


def label(
    body: str = "",
    *,
    kind: str = "Product_Observational",
    lid: str = "urn:nasa:pds:arm:data:one",
    vid: str = "1.0",
    model: str = "1.11.1.0",
    models: str = MODELS,
) -> str:
    """Return the text of a label."""
    return LABEL.format(ns=NS, kind=kind, lid=lid, vid=vid, model=model, body=body, models=models)


def area(file: str, parts: str = "", more: str = "") -> str:
    """Return the area of one file."""
    return AREA.format(file=file, parts=parts, more=more)


def write(folder: Path, name: str, text: str, **files: bytes) -> Path:
    """Write a label and its files, whose names have `_` for the point; returns the label."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    for file, content in files.items():
        (path.parent / file.replace("_", ".")).write_bytes(content)
    return path


def problems(path: Path, **options: object) -> list[ValidationProblem]:
    """Return what is found in a path, but not what is only information."""
    report = validate([path], ValidationOptions(**{"context": False, **options}))  # pyright: ignore[reportArgumentType]
    return [each for each in report.problems if each.severity != "info"]


def types(path: Path, **options: object) -> list[str]:
    """Return the types of what is found."""
    return [each.type for each in problems(path, **options)]
