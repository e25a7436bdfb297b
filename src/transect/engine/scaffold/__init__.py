"""First versions of nodes and compounds from their descriptions: typed stubs and a test, to be filled in.

What a description says is regenerated each time; what a person writes is never touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from transect.base.files import write_text
from transect.errors import UsageError

from ..description import CompoundText, NodeText
from ..reading import read_description, text_of
from . import compounds, nodes
from .code import refuse, snake_case
from .samples import sample_value

__all__ = ["Scaffold", "new_compound", "new_node", "sample_value"]


@dataclass
class Scaffold:
    """What was made of a description.

    Attributes
    ----------
    description, test : Path
        What it was made of, or its copy in our form; and the file to run next.
    written, regenerated, kept : list of Path
        Files that are new, those of which a part was renewed, and those that were left as they are.
    notes : list of str
        What a person should know.
    """

    description: Path
    test: Path
    written: list[Path] = field(default_factory=list[Path])
    regenerated: list[Path] = field(default_factory=list[Path])
    kept: list[Path] = field(default_factory=list[Path])
    notes: list[str] = field(default_factory=list[str])

    def once(self, path: Path, make: Callable[[], str]) -> None:
        """Write a file unless it is there."""
        if path.exists():
            self.kept.append(path)
        else:
            write_text(path, make())
            self.written.append(path)

    def renew(self, path: Path, text: str) -> None:
        """Write a file again, if that changes it."""
        if path.read_text(encoding="utf-8") == text:
            self.kept.append(path)
        else:
            write_text(path, text)
            self.regenerated.append(path)


def new_node(file: Path | str, folder: Path | str | None = None) -> Scaffold:
    """Write the interface that a file describes, stubs of its implementations, and a test.

    Parameters
    ----------
    file : path
        Description of a node.
    folder : path, optional
        Where to write; beside the description if not given. In a file that is there already only the
        interface is regenerated, and stubs of new implementations are added.
    """
    text = read_description(file)
    if not isinstance(text, NodeText):
        raise UsageError(f"{file} describes a compound", hint=f"transect new compound {file}")
    refuse(str(file), nodes.check_node(text))
    place = Path(folder) if folder is not None else Path(file).parent
    name = snake_case(text.name)
    module, made = place / f"{name}.py", Scaffold(Path(file), place / f"test_{name}.py")
    if module.exists():
        made.renew(module, nodes.renew_module(text_of(module), text, str(module)))
    else:
        made.once(module, lambda: nodes.write_module(text))
    made.once(made.test, lambda: nodes.write_test(text))
    return made


def new_compound(file: Path | str, folder: Path | str | None = None) -> Scaffold:
    """Write a compound in our form, stubs of its controllers, and a test that reads and checks it.

    Parameters
    ----------
    file : path
        Description of a compound, in any form.
    folder : path, optional
        Where to write; beside the description if not given. Files that are there are left as they are.
    """
    text = read_description(file)
    if not isinstance(text, CompoundText):
        raise UsageError(f"{file} describes a node", hint=f"transect new node {file}")
    refuse(str(file), compounds.check_compound(text))
    place = Path(folder) if folder is not None else Path(file).parent
    source = text_of(file)
    ours = compounds.is_ours(source, str(file))
    there = ours and place.resolve() == Path(file).resolve().parent
    made = Scaffold(
        Path(file) if there else place / f"{text.name}.yaml", place / f"test_{snake_case(text.name)}.py"
    )
    made.once(made.description, lambda: source if ours else compounds.write_yaml(text, made.notes))
    if not ours and made.description.exists() and made.description.samefile(file):
        made.notes.append(f"{file} stays in its form; -o with another folder writes it in ours")
    for controller, stub in compounds.write_controllers(text, made.notes).items():
        made.once(place / controller, lambda stub=stub: stub)
    made.once(made.test, lambda: compounds.write_test(text.name, made.description))
    return made
