"""Samples that are ASN.1 bit streams: decoded where their definition is known, else kept as bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transect.base.file_bytes import Content
from transect.errors import MissingExtraError, ParseError, TransectError, UnsupportedError, UsageError
from transect.recording import Source, Stream, source_of
from transect.types import Pose

from ..rock.samples import Form, form_of
from .cursor import Broken, octets_of

BITSTREAM = "asn1_bitstream"
SUFFIXES = (".asn", ".asn1")
_UPER = 0
"""CDFF's `serialization_method` for unaligned packed encoding rules."""


@dataclass(frozen=True)
class Definitions:
    """Compiled ASN.1 definitions, and a key that changes with their text."""

    compiled: Any = None
    key: str = ""

    def knows(self, type_name: str) -> bool:
        """Tell whether a type (`asn1SccPose`, `Pose`) is defined."""
        return self.compiled is not None and _asn1_name(type_name) in self.compiled.types

    def decode(self, type_name: str, data: bytes) -> Any:
        """Decode one value; raise Broken if it is not of the type."""
        import asn1tools

        try:
            return self.compiled.decode(_asn1_name(type_name), data)
        except (asn1tools.Error, ValueError, IndexError, KeyError, OverflowError, UnicodeError) as error:
            raise Broken(f"it is no {type_name} ({error})") from error


def _asn1_name(type_name: str) -> str:
    return type_name.removeprefix("asn1Scc").replace("_", "-")


def definitions_of(source: Source, path: str | None) -> Definitions:
    """Compile the ASN.1 files that lie beside a log, or that of a path."""
    files = [name for name in source.names if name.lower().endswith(SUFFIXES)]
    if path is not None:
        text = _text(source, Path(path))
    elif files:
        text = "\n".join(source.text(name) for name in files)
    else:
        return Definitions()
    try:
        import asn1tools
    except ModuleNotFoundError:
        raise MissingExtraError("asn1tools", "cdff") from None
    try:
        compiled = asn1tools.compile_string(text, "uper")
    except asn1tools.Error as error:
        where = path or ", ".join(files)
        raise ParseError("the ASN.1 definitions cannot be read", where=where, why=str(error)) from error
    return Definitions(compiled, hashlib.sha256(text.encode()).hexdigest()[:16])


def _text(source: Source, path: Path) -> str:
    try:
        return source.beside(path).document(path.name).decode("utf-8")
    except (OSError, UnicodeDecodeError, TransectError) as error:
        raise UsageError("the ASN.1 definitions cannot be opened", where=str(path), why=str(error)) from error


def decoder(view: Content, definitions: Definitions) -> Callable[[Any], Any]:
    """Return what makes a plain sample of a bit stream whose bytes are still in the log."""

    def decode(sample: Any) -> Any:
        place, name = sample.get("data"), str(sample.get("type", ""))
        if not isinstance(place, dict):
            raise Broken("a bit stream without data")
        data = octets_of(view[place["at"] : place["at"] + place["size"]]).tobytes()
        if sample.get("serialization_method") == _UPER and definitions.knows(name):
            return definitions.decode(name, data)
        return {**sample, "data": data}

    return decode


_TYPE = "Pose"


def bitstream_form(definitions: str | Path) -> Form:
    """Return how a stream of poses is written where its ASN.1 definition is known.

    Parameters
    ----------
    definitions : path
        A file, or a folder of files, with a type `Pose` of `pos` and `orient`.
    """
    known = definitions_of(source_of(definitions), None)
    if not known.knows(_TYPE):
        raise UnsupportedError(f"no type {_TYPE} is defined", where=str(definitions))

    def samples(stream: Stream) -> Iterator[dict[str, Any]]:
        plain = form_of(stream)
        for sample in plain.samples(stream) if plain else ():
            data = _encode(known.compiled, sample, stream.name)
            yield {"serialization_method": 0, "type": f"asn1Scc{_TYPE}", "data": list(data)}

    return Form(BITSTREAM, samples, frozenset(Pose.units()), timed=False)


def _encode(compiled: Any, sample: dict[str, Any], name: str) -> bytes:
    import asn1tools

    try:
        return bytes(compiled.encode(_TYPE, sample))
    except asn1tools.Error as error:
        raise UnsupportedError(
            f"the poses of {name} do not fit the ASN.1 definition", why=str(error)
        ) from error
