"""The checks of the words in a description: names, missing documentation, spelling."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from transect import types
from transect.types.aliases import CDFF_NAMES, CDFF_OTHER_NAMES

from ..description import CompoundText, PortText
from ..reading import FILE_KEYS, NODE_KEYS, PORT_KEYS
from .faces import Description, Finding

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
SHORTEST = 4
"""Letters of a word that is looked at: shorter ones are near too many others."""
OFTENER = 5
"""How many times as common a word must be for its neighbour to look misspelt."""


def names(text: Description) -> Iterator[Finding]:
    """Names that cannot be names in Python, as ports and nodes are."""
    for line, called, name in _names(text):
        if not NAME.fullmatch(name):
            better = re.sub(r"\W+", "", name)
            hint = f"write {better}" if NAME.fullmatch(better) else "letters, digits and _"
            yield Finding(line, f"{name!r} cannot be the name of {called}", hint)


def _names(text: Description) -> Iterator[tuple[int, str, str]]:
    """Yield line, what it names, and name; those left out were reported when the file was read."""
    if text.name:
        yield text.line, "a compound" if isinstance(text, CompoundText) else "a node", text.name
    yield from ((port.line, "a port", port.name) for port in ports(text))
    if isinstance(text, CompoundText):
        for each in text.implementations.values():
            if each.name not in ("", text.name):
                yield each.line, "an implementation", each.name
            yield from ((use.line, "a node", use.id) for use in each.nodes.values())
    else:
        others = (name for name in text.implementations if name != text.name)
        yield from ((text.line, "an implementation", name) for name in others)


def ports(text: Description) -> list[PortText]:
    """Return all ports of a description."""
    return [*text.inputs.values(), *text.outputs.values()]


def documents(text: Description) -> Iterator[Finding]:
    """What has no documentation."""
    if not text.doc:
        yield Finding(text.line, f"{text.name} has no doc", "doc: what it does", grave=False)
    if bare := [port for port in ports(text) if not port.doc]:
        what = "ports without doc: " + ", ".join(port.name for port in bare)
        yield Finding(bare[0].line, what, "doc: what it carries", grave=False)


def words_of(name: str) -> list[str]:
    """Return the words in a name, in small letters: point, cloud of `pointCloud` and `point_cloud`."""
    return [word.lower() for word in WORD.findall(name)]


def vocabulary(texts: Iterable[Description]) -> Counter[str]:
    """Return how common words are in the ports and documentation of descriptions, and among our own."""
    counts = Counter(dict.fromkeys(_own_words(), OFTENER))
    for text in texts:
        for port in ports(text):
            counts.update(words_of(port.name) + words_of(port.doc))
        counts.update(words_of(text.doc))
    return counts


@cache
def _own_words() -> frozenset[str]:
    known = (*types.__all__, *CDFF_NAMES, *CDFF_OTHER_NAMES, *FILE_KEYS, *PORT_KEYS, *NODE_KEYS)
    return frozenset(word for name in known for word in words_of(name))


def spelling(text: Description, counts: Counter[str]) -> Iterator[Finding]:
    """Words in the names of ports that are one letter away from a much more common one."""
    for port in ports(text):
        for word in words_of(port.name):
            if len(word) >= SHORTEST and (better := _guess_word(word, counts)):
                yield Finding(port.line, f"{port.name}: is {word!r} meant to be {better!r}?", grave=False)


def _guess_word(word: str, counts: Counter[str]) -> str:
    enough = OFTENER * counts[word]
    near = [(-count, other) for other, count in counts.items() if count >= enough and _one_apart(word, other)]
    return min(near)[1] if near else ""


def _one_apart(a: str, b: str) -> bool:
    """Tell whether one letter is left out, added, changed or swapped with its neighbour; plurals are not."""
    if a == b or abs(len(a) - len(b)) > 1 or a in (f"{b}s", f"{b}d") or b in (f"{a}s", f"{a}d"):
        return False
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[:2][::-1] and a[2:] == b[2:])
