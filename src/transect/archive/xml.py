"""XML elements of labels, with reproducible formatting."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transect.base.xml import escape, quote


@dataclass(frozen=True, slots=True)
class LabelElement:
    """An element: text, or others inside."""

    tag: str  # with its prefix, if it has one: `proc:Process`
    content: str | tuple[LabelElement, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()

    def prefixes(self) -> set[str]:
        """Return the prefixes that it and what is inside use, without `xsi`."""
        found: set[str] = set()
        pending: list[LabelElement] = [self]
        while pending:
            element = pending.pop()
            if ":" in element.tag:
                found.add(element.tag.partition(":")[0])
            if not isinstance(element.content, str):
                pending += element.content
        return found


Children = LabelElement | Iterable[LabelElement | None] | None


def group(tag: str, *children: Children, **attributes: str) -> LabelElement:
    """Return an element with others inside; children that are None are left out."""
    return LabelElement(tag, tuple(_flat(children)), tuple(attributes.items()))


def leaf(tag: str, value: object, **attributes: str) -> LabelElement | None:
    """Return an element with text inside; None if there is none to be said (None, "")."""
    text = "" if value is None else str(value)
    return LabelElement(tag, text, tuple(attributes.items())) if text else None


def nil(tag: str, reason: str = "unknown") -> LabelElement:
    """Return an element whose value cannot be given, and why."""
    return LabelElement(tag, "", (("xsi:nil", "true"), ("nilReason", reason)))


def ascii_text(text: str) -> str:
    """Return a text as elements take it that have ASCII only: letters without accents, other signs as `?`."""
    if text.isascii():
        return text
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))
    return plain.encode("ascii", "replace").decode()


def _flat(children: Iterable[Children]) -> Iterator[LabelElement]:
    for child in children:
        if isinstance(child, LabelElement):
            yield child
        elif child is not None:
            yield from (each for each in child if each is not None)


def document_text(root: LabelElement, instructions: Iterable[str] = ()) -> str:
    """Return a document: two blanks for each depth, a line for each element, lines ended by LF."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', *(f"<?{each}?>" for each in instructions)]
    _write(root, "", lines)
    return "\n".join(lines) + "\n"


def _write(element: LabelElement, indent: str, lines: list[str]) -> None:
    start = element.tag + "".join(f' {name}="{quote(text)}"' for name, text in element.attributes)
    content = element.content
    if not content:
        lines.append(f"{indent}<{start}/>")
    elif isinstance(content, str):
        lines.append(f"{indent}<{start}>{escape(content)}</{element.tag}>")
    else:
        lines.append(f"{indent}<{start}>")
        for child in content:
            _write(child, f"{indent}  ", lines)
        lines.append(f"{indent}</{element.tag}>")
