"""The Python reference: a page for each public package, from signatures and numpydoc docstrings."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import griffe

from transect.base.field_docs import read_field_comments

from .markdown import block_of, name_of, table_of

PACKAGES: dict[str, tuple[str, ...]] = {
    "recording": ("transect.recording",),
    "formats": ("transect.formats",),
    "robots": ("transect.robots",),
    "simulation": ("transect.simulation.day", "transect.simulation.faults"),
    "engine": ("transect.engine",),
    "integrity": ("transect.integrity",),
    "evaluation": ("transect.evaluation",),
    "products": ("transect.products",),
    "orchestrator": ("transect.orchestrator",),
    "archive": (
        "transect.archive.assembly.sources",
        "transect.archive.builder",
        "transect.archive.validation.validator",
        "transect.archive.validation.options",
    ),
    "view": ("transect.view.report", "transect.view.viewer"),
    "geometry": tuple(
        f"transect.geometry.{name}"
        for name in ("rotations", "se3", "planar", "align", "camera", "geodesy", "interpolation")
    ),
}
"""What each page documents: the names in `__all__` of its modules, or the public ones that they define."""
MAX_SIGNATURE_WIDTH = 88
"""Characters of a signature on one line."""


def pages() -> Iterator[tuple[str, str]]:
    """Yield path and text of each page."""
    yield "reference/transect.md", front_page()
    for name, modules in PACKAGES.items():
        yield f"reference/{name}.md", package_page(name, modules)


def package_page(name: str, modules: tuple[str, ...]) -> str:
    """Return the page of a package; with several modules each has its part."""
    if len(modules) == 1:
        return f"# {modules[0]}\n\n{module_part(modules[0])}"
    parts = [f"## {module}\n\n{module_part(module)}" for module in modules]
    return "\n".join([f"# transect.{name}\n", *parts])


def front_page() -> str:
    """Return what `import transect` offers, each with a link to where it is described."""
    import transect

    where = {(thing, key): page for page, key, thing in _documented()}
    rows = []
    for key in transect.__all__:
        thing = getattr(transect, key)
        page = where.get((id(thing), key))
        rows.append((f"[`{key}`]({page}.md#{_anchor(key)})" if page else name_of(key), _first_line(thing)))
    return (
        "# transect\n\nNames that `import transect` offers. They are imported when they are used.\n\n"
        f"{table_of(('name', 'what'), rows)}\n"
        "Types of samples (`Imu`, `Pose`, `Image`, ...) are on [a page of their own](../types.md).\n"
    )


def _documented() -> Iterator[tuple[str, str, Any]]:
    for page, modules in PACKAGES.items():
        for name in modules:
            module = importlib.import_module(name)
            yield from ((page, key, id(getattr(module, key))) for key in public_names(module))


def public_names(module: ModuleType) -> list[str]:
    """Return the names that a module offers: its `__all__`, or what it defines without an underscore."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [key for key in listed if callable(getattr(module, key))]
    own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [key for key in own if key[0] != "_" and callable(getattr(module, key))]


def module_part(name: str) -> str:
    """Return what a module says of itself, and each of its names."""
    module = importlib.import_module(name)
    things = [(key, getattr(module, key)) for key in public_names(module)]
    return "\n".join([prose_of(module), *(thing_part(key, thing) for key, thing in things)])


def thing_part(key: str, thing: Any) -> str:
    """Return a function, or a class with its methods."""
    parts = [f"### {key} {{#{_anchor(key)}}}\n", signature_of(key, thing), prose_of(thing)]
    if dataclasses.is_dataclass(thing):
        parts.append(fields_of(thing))
    if inspect.isclass(thing) and not issubclass(thing, BaseException):
        for name, member in vars(thing).items():
            if name[0] != "_" and (described := _member(name, member)):
                parts.append(described)
    return "\n".join(filter(None, parts))


def fields_of(thing: Any) -> str:
    """Return a table of the fields of a dataclass that have comments; "" if there are none."""
    rows = [(name_of(name), name_of(kind), text) for name, (kind, text) in read_field_comments(thing).items()]
    return f"**Attributes**\n\n{table_of(('name', 'type', 'meaning'), rows)}\n" if rows else ""


def _member(name: str, member: Any) -> str:
    """Return a method or a property that says what it does; "" for others."""
    function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    computed = inspect.isdatadescriptor(member) and hasattr(member, "fget")
    if not inspect.getdoc(function) or not (inspect.isfunction(function) or computed):
        return ""
    signature = "" if computed else signature_of(name, function)
    return "\n".join(filter(None, [f"#### .{name}\n", signature, prose_of(function)]))


class _Source:
    """An annotation as it stands in the source, where it is text and not text in quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def signature_of(name: str, thing: Any) -> str:
    """Return a signature as a block, a parameter a line where it is long; "" without one."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = [p.replace(annotation=_plain(p.annotation)) for p in signature.parameters.values()]
    parameters = [p for p in parameters if p.name not in ("self", "cls")]
    returned = inspect.Signature.empty if inspect.isclass(thing) else _plain(signature.return_annotation)
    text = f"{name}{signature.replace(parameters=parameters, return_annotation=returned)}"
    if len(text) > MAX_SIGNATURE_WIDTH:
        head, tail = name, str(inspect.Signature(return_annotation=returned)).removeprefix("()")
        text = f"{head}(\n" + "".join(f"    {line},\n" for line in _listed(parameters)) + f"){tail}"
    return block_of(text, "python")


def _plain(annotation: Any) -> Any:
    return _Source(annotation) if isinstance(annotation, str) else annotation


def _listed(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Yield the parameters with the signs `/` and `*` where Python has them."""
    kinds = [p.kind for p in parameters]
    for k, each in enumerate(parameters):
        if each.kind is each.KEYWORD_ONLY and not {each.KEYWORD_ONLY, each.VAR_POSITIONAL} & set(kinds[:k]):
            yield "*"
        yield str(each)
        if each.kind is each.POSITIONAL_ONLY and kinds[k + 1 : k + 2] != [each.kind]:
            yield "/"


def prose_of(thing: Any) -> str:
    """Return a docstring as Markdown: its text, and tables of parameters, attributes, results, errors."""
    text = inspect.getdoc(thing) or ""
    parts = []
    for section in griffe.Docstring(text).parse("numpy", warnings=False):
        if isinstance(section.value, str):
            parts.append(section.value.replace("``", "`"))
        elif isinstance(section.value, list):
            title = section.title or section.kind.value.capitalize()
            parts.append(f"**{title}**\n\n{_entries(section.value)}")
    return "\n\n".join(parts) + "\n" if parts else ""


def _entries(entries: list[Any]) -> str:
    """Return the parameters of a section as a table; examples as they are."""
    rows = []
    for entry in entries:
        if isinstance(entry, tuple):  # of an example: (kind, text)
            return "\n".join(block_of(str(text), "pycon") for _, text in entries)
        name = getattr(entry, "name", "") or ""
        kind = str(entry.annotation).replace("`", "") if entry.annotation else ""
        rows.append((name_of(name), name_of(kind), entry.description.replace("``", "`")))
    return table_of(("name", "type", "meaning"), rows)


def _first_line(thing: Any) -> str:
    if isinstance(thing, str):
        return "the version"
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("``", "`")


def _anchor(key: str) -> str:
    return key.lower()
