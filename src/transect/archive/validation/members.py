"""Which labels belong to the bundle or collection that is validated: older versions are left out."""

from __future__ import annotations

from collections.abc import Sequence

from .checking import relative
from .integrity import Seen
from .surveys import Survey


def choose_members(seen: Sequence[Seen], what: Survey) -> tuple[list[Seen], Seen | None]:
    """Return the labels that count, and the one that names the others.

    Of several bundles the one that was named counts, else the newest in the root folder; of several versions
    of a collection the one that the bundle names, else the newest. All other products count.
    """
    if what.rule not in ("bundle", "collection"):
        return list(seen), None
    kind = "Product_Bundle" if what.rule == "bundle" else "Product_Collection"
    root = _root(seen, what, kind)
    if root is None:
        return list(seen), None
    named = {member.lid: member.vid for member in root.members}
    collections = _newest([each for each in seen if each.kind == "Product_Collection"], named)
    kept: list[Seen] = []
    for each in seen:
        if each.kind == kind:
            wanted = each is root
        elif each.kind == "Product_Collection":
            wanted = each is root or each in collections
        else:
            wanted = each.kind != "Product_Bundle"
        if wanted:
            kept.append(each)
    return kept, root


def _root(seen: Sequence[Seen], what: Survey, kind: str) -> Seen | None:
    found = [each for each in seen if each.kind == kind]
    if what.chosen is not None:
        name = relative(what.chosen, what.root)
        return next((each for each in found if each.name == name), None)
    top = [each for each in found if "/" not in each.name] or found
    return max(top, key=lambda each: each.version, default=None)


def _newest(collections: Sequence[Seen], named: dict[str, str]) -> list[Seen]:
    """Return one version of each collection: that which is named, else the newest."""
    chosen: dict[str, Seen] = {}
    for each in collections:
        vid = named.get(each.lid, "")
        best = chosen.get(each.lid)
        if (
            best is None
            or (each.vid == vid) > (best.vid == vid)
            or (best.vid != vid and each.version > best.version)
        ):
            chosen[each.lid] = each
    return list(chosen.values())
