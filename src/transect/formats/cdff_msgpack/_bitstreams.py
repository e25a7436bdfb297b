"""Poses as ASN.1 bit streams, as CDFF's own components log them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transect.errors import UnsupportedError
from transect.recording import Stream, source_of
from transect.types import Pose

from .._rock.samples import Form, form_of
from .asn1 import BITSTREAM, definitions_of

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
            data = _encoded(known.compiled, sample, stream.name)
            yield {"serialization_method": 0, "type": f"asn1Scc{_TYPE}", "data": list(data)}

    return Form(BITSTREAM, samples, frozenset(Pose.units()), timed=False)


def _encoded(compiled: Any, sample: dict[str, Any], name: str) -> bytes:
    import asn1tools

    try:
        return bytes(compiled.encode(_TYPE, sample))
    except asn1tools.Error as error:
        raise UnsupportedError(
            f"the poses of {name} do not fit the ASN.1 definition", why=str(error)
        ) from error
