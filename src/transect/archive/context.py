"""Context products: registered ones are referenced, others become products of the bundle."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from transect.errors import ParseError

from .bundle import BundleProduct, CopiedProduct
from .identifiers import Lid, Vid, identifier_part
from .labels.areas import LabelSubject
from .schemas import find_schemas
from .validation.references import REGISTERED, find_context
from .xml import LabelElement, group, leaf, nil

Role = Literal["investigation", "instrument_host", "instrument", "target"]


@dataclass(frozen=True)
class RegisteredContext:
    """A registered context product."""

    lid: Lid
    names: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def role(self) -> str:
        """Its kind: `target`, `instrument`, ..."""
        return self.lid.parts[4] if len(self.lid.parts) > 4 else ""


@dataclass(frozen=True)
class ContextRegistry:
    """All registered context products; none where the list of them was not found."""

    products: tuple[RegisteredContext, ...] = field(default=(), repr=False)
    path: Path | None = None

    def find(self, role: Role, name: str) -> RegisteredContext | None:
        """Return what is registered under a name, ignoring case."""
        wanted = name.casefold()
        found = (each for each in self.products if each.role == role)
        return next((each for each in found if wanted in map(str.casefold, each.names)), None)

    def get(self, lid: Lid) -> RegisteredContext | None:
        """Return what is registered under an identifier."""
        return next((each for each in self.products if each.lid == lid), None)


def find_registry(given: Path | None = None) -> ContextRegistry:
    """Return the list that is given, else the one in, or beside, a folder of schemas, else an empty one.

    Raises
    ------
    ParseError
        If the list that was found cannot be read.
    """
    path = given or find_context(find_schemas().folders)
    return ContextRegistry() if path is None else ContextRegistry(tuple(_read(path)), path)


def _read(path: Path) -> Iterable[RegisteredContext]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["Product_Context"]
        return [
            RegisteredContext(
                Lid(each["lidvid"].partition("::")[0]), tuple(each["name"]), tuple(each["type"])
            )
            for each in entries
        ]  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = f"it should look like NASA's {REGISTERED}"
        what = "the list of context products cannot be read"
        raise ParseError(what, where=str(path), why=str(error), hint=hint) from error


@dataclass(frozen=True)
class ContextObject:
    """Description of an investigation, a host, an instrument or a target."""

    role: Role
    name: str
    type: str
    description: str = ""
    lid: Lid | None = None  # of its context product, where one is known
    # dates of an investigation; "" where they are not known
    start: str = ""
    stop: str = ""


def registrations(products: Iterable[BundleProduct | CopiedProduct]) -> str:
    """Return the context products among some in the format of the list of registered ones, JSON; "" for none.

    They must be registered before a bundle is accepted; until then validators read them from this text.
    """
    own = [each for each in products if isinstance(each, BundleProduct) and each.subject is not None]
    entries = [
        {
            "name": [_said(each, "name")], "type": [_said(each, "type"), "Host"][: 1 + _is_host(each)],
            "lidvid": str(each.lid.at(each.vid or Vid())),
        }
        for each in own
    ]  # fmt: skip
    return json.dumps({"Product_Context": entries}, indent=2) + "\n" if entries else ""


def _said(product: BundleProduct, tag: str) -> str:
    inside = product.subject.content if product.subject is not None else ()
    return next(
        (str(each.content) for each in inside if isinstance(each, LabelElement) and each.tag == tag), ""
    )


def _is_host(product: BundleProduct) -> bool:
    return product.subject is not None and product.subject.tag == "Instrument_Host"


_COMPONENTS = {"instrument_host": "Host", "instrument": "Instrument"}
"""How an observing system calls its parts."""


def resolve(
    said: ContextObject, registry: ContextRegistry, collection: Lid
) -> tuple[LabelSubject, BundleProduct | None]:
    """Return what labels call something, and the product that describes it if it is not registered.

    Targets are looked up by name, too. Names of robots and sensors are not unique (a `Lidar` is registered,
    of another mission), so only their identifiers tell. An instrument that is not registered has no product:
    the core wants a list of types that is no part of it.
    """
    by_name = registry.find(said.role, said.name) if said.role == "target" else None
    known = registry.get(said.lid) if said.lid else by_name
    type = _COMPONENTS.get(said.role, said.type)
    if known is not None:
        name = said.name if said.name in known.names else known.names[0]
        registered = known.types[0] if said.role not in _COMPONENTS else type
        return LabelSubject(name, registered, known.lid), None
    if said.lid is not None:
        return LabelSubject(said.name, type, said.lid), None
    if said.role == "instrument":
        return LabelSubject(said.name, type, description=said.description), None
    lid = collection.child(f"{said.role}.{identifier_part(said.name)}")
    return LabelSubject(said.name, type, lid), _local(said, lid)


def _local(said: ContextObject, lid: Lid) -> BundleProduct:
    about = leaf("description", said.description or said.name)
    name, type = leaf("name", said.name), leaf("type", said.type)
    if said.role == "investigation":
        dates = [
            leaf("start_date", said.start),
            leaf("stop_date", said.stop) or nil("stop_date", "unknown"),
        ]
        subject = group("Investigation", name, type, dates, about)
    elif said.role == "instrument_host":
        subject = group("Instrument_Host", name, type, about)
    else:
        subject = group("Target", name, type, about)
    return BundleProduct(lid, said.name, kind="Product_Context", subject=subject)
