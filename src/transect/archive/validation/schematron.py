"""Schematron: rules compiled to one XSLT 3 walk over the label, run by Saxon (the extra `archive`).

All patterns share one mode: each rule is a template of a lower priority than the one before and ends in
`xsl:next-match`, so that a label is walked once. A pattern of several rules has its own mode, as only its
first matching rule applies. Rules whose context names no element of the label cannot fire, and are
compiled when a label first needs them: one label costs a tenth of compiling all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transect.base.xml import load_xml, local_name
from transect.errors import MissingExtraError, ParseError

SCH = "{http://purl.oclc.org/dsdl/schematron}"
XSL = "http://www.w3.org/1999/XSL/Transform"
PART, END = "\ue000", "\ue001"
"""Signs of the private area: between the parts of a failure, and after it."""
MAX_PARTIAL_COMPILATIONS = 3
"""After this number of compilations of rules for new elements, all rules are compiled."""
CONFINED = {"allowedProtocols": "", "allow-external-functions": "off"}
"""Rules that lie beside a label may be hostile: they read no file, address or environment variable."""
_STEP = re.compile(r"(?:[\w.-]+:)?([\w.-]+)(?:\[.*)?$", re.DOTALL).match


@dataclass(frozen=True)
class FailedAssertion:
    """An assertion that did not hold: where, how bad, and what it says."""

    path: str
    role: str
    text: str


@dataclass(frozen=True, eq=False)
class SchematronRule:
    """One rule of a pattern."""

    element: Any
    pattern: int  # the pattern's number, where it has a mode of its own; else -1
    names: frozenset[str] | None  # names of elements that the rule can be about; None for any
    lets: tuple[Any, ...]  # of the pattern, evaluated from the root
    namespaces: dict[str, str]  # prefixes of the schema

    def concerns(self, present: frozenset[str]) -> bool:
        """Return whether the rule can fire on a label that has these elements."""
        return self.names is None or not self.names.isdisjoint(present)


def context_names(context: str) -> frozenset[str] | None:
    """Return the names that the last steps of a rule's context have; None if that cannot be told."""
    names: set[str] = set()
    for branch in _split(context, "|"):
        found = _STEP(_split(branch, "/")[-1].strip())
        if found is None or found[1] == "." or "(" in found[1]:
            return None
        names.add(found[1])
    return frozenset(names)


def _split(text: str, sign: str) -> list[str]:
    """Split where the sign stands outside brackets, parentheses and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif letter == sign and not depth:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def read_rules(paths: Iterable[Path]) -> list[SchematronRule]:
    """Read the rules of Schematron files, in order."""
    rules: list[SchematronRule] = []
    patterns = 0
    for path in paths:
        schema = load_xml(path.read_bytes(), path.name)
        namespaces = {each.get("prefix"): each.get("uri") for each in schema.iter(f"{SCH}ns")}
        shared = tuple(schema.iterchildren(f"{SCH}let"))
        for pattern in schema.iter(f"{SCH}pattern"):
            found = list(pattern.iterchildren(f"{SCH}rule"))
            lets = (*shared, *pattern.iterchildren(f"{SCH}let"))
            patterns += 1
            mode = patterns if len(found) > 1 else -1
            rules += [
                SchematronRule(each, mode, context_names(each.get("context")), lets, namespaces)
                for each in found
            ]
    return rules


def stylesheet(rules: Iterable[SchematronRule]) -> str:
    """Return an XSLT 3 stylesheet that prints each assertion that fails: path, role, text."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    chosen = list(rules)
    modes = sorted({rule.pattern for rule in chosen if rule.pattern >= 0})
    root = etree.Element(f"{{{XSL}}}stylesheet", nsmap={"xsl": XSL}, version="3.0")
    _add(root, "output", method="text")
    for mode in ("m", *(f"p{each}" for each in modes)):
        _add(root, "mode", name=mode, **{"on-no-match": "shallow-skip"})
    start = _add(root, "template", match="/")
    for mode in ("m", *(f"p{each}" for each in modes)):
        _add(start, "apply-templates", select=".", mode=mode)
    for number, rule in enumerate(chosen):
        _add_template(root, rule, len(chosen) - number)
    return etree.tostring(root, encoding="unicode")


def _add(parent: Any, tag: str, /, **attributes: str) -> Any:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    return etree.SubElement(parent, f"{{{XSL}}}{tag}", **attributes)


def _add_template(root: Any, rule: SchematronRule, priority: int) -> None:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    mode = f"p{rule.pattern}" if rule.pattern >= 0 else "m"
    template = etree.SubElement(
        root, f"{{{XSL}}}template", nsmap=rule.namespaces,
        match=rule.element.get("context"), mode=mode, priority=str(priority),
    )  # fmt: skip
    for let in rule.lets:
        _add(template, "variable", name=let.get("name"), select=f"root(.)!({let.get('value')})")
    for element in rule.element:
        tag = local_name(element)
        if tag == "let":
            _add(template, "variable", name=element.get("name"), select=element.get("value"))
        elif tag in ("assert", "report"):
            _add_assertion(template, rule, element, tag)
    if rule.pattern >= 0:
        _add(template, "apply-templates", select="@*, node()", mode=mode)
    else:
        _add(template, "next-match")


def _add_assertion(template: Any, rule: SchematronRule, element: Any, tag: str) -> None:
    test = element.get("test")
    when = _add(template, "if", test=f"not({test})" if tag == "assert" else test)
    role = element.get("role") or rule.element.get("role") or ""
    _add(when, "value-of", select="path()")
    _add(when, "text").text = f"{PART}{role}{PART}"
    _add(when, "text").text = element.text
    for part in element:
        if local_name(part) == "value-of":
            _add(when, "value-of", select=part.get("select"))
        elif local_name(part) == "name":
            _add(when, "value-of", select=f"name({part.get('path', '.')})")
        _add(when, "text").text = part.tail
    _add(when, "text").text = END


class Saxon:
    """The processor, started once in a process."""

    _started: Saxon | None = None

    def __init__(self) -> None:
        try:
            from saxonche import PySaxonApiError, PySaxonProcessor  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise MissingExtraError("saxonche", "archive") from error
        self.processor: Any = PySaxonProcessor(license=False)
        for name, value in CONFINED.items():
            self.processor.set_configuration_property(f"http://saxon.sf.net/feature/{name}", value)
        self.error: Any = PySaxonApiError

    @classmethod
    def start(cls) -> Saxon:
        """Return the processor of this process."""
        if cls._started is None:
            cls._started = cls()
        return cls._started

    def compile(self, text: str) -> Any:
        """Compile a stylesheet."""
        return self.processor.new_xslt30_processor().compile_stylesheet(stylesheet_text=text)


class Schematron:
    """The rules of some Schematron files, compiled when they are first needed."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(paths)
        self._present: frozenset[str] = frozenset()
        self._growths = 0
        self._program: Any = None
        self._count = 0

    @cached_property
    def rules(self) -> list[SchematronRule]:
        """The rules, in the order of the files."""
        return read_rules(self.paths)

    def failures(self, text: str, present: frozenset[str]) -> Iterator[FailedAssertion]:
        """Yield the assertions that a label does not fulfil.

        Parameters
        ----------
        text : str
            The label, which `load_xml` has accepted.
        present : frozenset of str
            Names of its elements.
        """
        saxon = Saxon.start()
        try:
            program = self._program_for(present, saxon)
            if program is None:
                return
            node = saxon.processor.parse_xml(xml_text=text)
            printed: str = program.transform_to_string(xdm_node=node) or ""
        except saxon.error as error:
            names = ", ".join(path.name for path in self.paths)
            raise ParseError("the Schematron rules cannot be run", where=names, why=str(error)) from error
        for text in printed.split(END)[:-1]:
            path, role, message = text.split(PART)
            yield FailedAssertion(path.strip(), role, " ".join(message.split()))

    def _program_for(self, present: frozenset[str], saxon: Saxon) -> Any:
        if not present <= self._present:
            self._growths += 1
            self._present |= present
            whole = self._growths > MAX_PARTIAL_COMPILATIONS
            chosen = [rule for rule in self.rules if whole or rule.concerns(self._present)]
            if len(chosen) != self._count:
                self._program = saxon.compile(stylesheet(chosen))
                self._count = len(chosen)
            if whole:
                self._present |= {name for rule in self.rules for name in rule.names or ()}
        return self._program
