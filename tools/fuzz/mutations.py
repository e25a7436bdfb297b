"""Mutated files: a damaged recording opens, with losses, or is refused with an error of ours.

Mutation `number` of a sample under a seed is always the same.
"""

from __future__ import annotations

import random
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.formats.corpus import Special

from .structures import STRUCTURES, Edit, repack

ROOT = Path(__file__).resolve().parents[2]
FOUND = ROOT / "tests" / "formats" / "found"
"""Finds, which the tests open one by one."""
MEMORY_BYTES = 512 * 2**20
"""How much more address space a process may take than it had before it opened a mutation."""
USED_MEMORY_BYTES = 2 << 30
"""The same for all commands together, with what they import."""

PATIENCE_S = 60.0
"""Longest CPU time of one that is used."""

Files = Mapping[str, "bytes | Special"]

PIECES = (
    *(
        b"\n",
        b"\r\n",
        b"#",
        b"%",
        b" ",
        b"\t",
        b",",
        b";",
        b":",
        b".",
        b"-",
        b'"',
        b"'",
        b"\0",
        b"{",
        b"[",
        b"<",
    ),
    *(b"nan", b"inf", b"-inf", b"1e999", b"1e-20000000", b"-1", b"null", b"true", b"../../x", b"\xff\xfe"),
    *(
        b"9" * 20,
        b"9" * 400,
        b"9223372036854775808",
        b"\xc3",
        b"\xed\xa0\x80",
        b"&a [*a]",
        b"!!python/name:os",
    ),
)
EDGE_INTEGERS = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**63 - 1,
    2**64 - 1,
)


def _place(rng: random.Random, data: bytes) -> int:
    return rng.randrange(len(data) + 1)


def flip(rng: random.Random, data: bytes) -> bytes:
    """Flip one bit."""
    at = _place(rng, data)
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :] if at < len(data) else data


def cut(rng: random.Random, data: bytes) -> bytes:
    """Keep the first part."""
    return data[: _place(rng, data)]


def insert(rng: random.Random, data: bytes) -> bytes:
    """Put random bytes, or a piece of text, somewhere."""
    at = _place(rng, data)
    piece = rng.choice(PIECES) if rng.random() < 0.7 else rng.randbytes(rng.randint(1, 8))
    return data[:at] + piece + data[at:]


def replace(rng: random.Random, data: bytes) -> bytes:
    """Put a piece of text in the place of a few bytes."""
    at = _place(rng, data)
    return data[:at] + rng.choice(PIECES) + data[at + rng.randint(1, 8) :]


def remove(rng: random.Random, data: bytes) -> bytes:
    """Take some bytes out."""
    at = _place(rng, data)
    return data[:at] + data[at + rng.choice((1, 2, 7, 64, 1000)) :]


def repeat(rng: random.Random, data: bytes) -> bytes:
    """Have some bytes twice."""
    at, count = _place(rng, data), rng.choice((1, 8, 64, 1000))
    return data[: at + count] + data[at : at + count] + data[at + count :]


def overwrite(rng: random.Random, data: bytes) -> bytes:
    """Write an integer at the edge of its range over what is there: sizes, counts, offsets."""
    size, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
    value = rng.choice(EDGE_INTEGERS) % (1 << 8 * size)
    at = _place(rng, data)
    return data[:at] + value.to_bytes(size, order) + data[at + size :]


EDITS: tuple[Edit, ...] = (
    flip,
    flip,
    cut,
    insert,
    insert,
    replace,
    replace,
    remove,
    repeat,
    overwrite,
    overwrite,
)


def mutate(files: Files, seed: str) -> dict[str, bytes | Special]:
    """Return the files with one to three edits; seldom one of them is missing, empty, or no file at all."""
    rng, changed = random.Random(seed), dict(files)
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(sorted(changed))
        content, chance = changed[name], rng.random()
        if len(changed) > 1 and chance < 0.03:
            del changed[name]
        elif chance < 0.05:
            changed[name] = Special(rng.choice(Special.KINDS))
        elif chance < 0.06:
            changed[name] = b""
        elif isinstance(content, bytes):
            edit = rng.choice(EDITS if rng.random() < 0.4 else STRUCTURES)
            changed[name] = repack(rng, content, edit) if rng.random() < 0.6 else edit(rng, content)
    return changed


def seed_of(sample: str, seed: int, number: int) -> str:
    """Return what decides a mutation."""
    return f"{sample}/{seed}/{number}"


def open_mutations(
    sample: str, seed: int, first: int, count: int, scratch: Path, use_every: int = 20
) -> Iterator[dict[str, Any]]:
    """Open mutations one after the other; yield what came out of each, its CPU seconds and peak bytes.

    The first that is yielded is empty: the process is ready, and its memory limited from then on. One in
    `use_every` (0: none) that opens is checked, reported, exported and shown, too.
    """
    from tests.formats.corpus import sample as load

    from .using import use

    original = load(sample)
    folder = scratch / "day"
    empty(folder)
    judge(original.write(folder), original.format, original.options)  # imports are not measured
    limit_memory()
    before = status_bytes("VmRSS")
    yield {}
    for number in range(first, first + count):
        empty(folder)
        path = original.write(folder, mutate(original.files, seed_of(sample, seed, number)))
        forget_peak()
        began = time.process_time()
        outcome, error = judge(path, original.format if number % 5 else None, original.options)
        seconds, peak = time.process_time() - began, max(0, status_bytes("VmHWM") - before)
        used = use_every > 0 and number % use_every == 7 % use_every and outcome == "opened"
        if used:
            yield {"patience": PATIENCE_S}
            limit_memory(USED_MEMORY_BYTES)
            outcome, error = use(path, original.format, original.options, number, scratch / "out")
            limit_memory()
            before = status_bytes("VmRSS")  # what the commands have imported stays
        yield {"outcome": outcome, "error": error, "seconds": seconds, "peak": peak, "used": int(used)}


def judge(path: Path, format: str | None, options: Mapping[str, Any]) -> tuple[str, str]:
    """Open a recording and look at everything; return `opened`, `refused` or `untyped`, and the error."""
    from tests.formats.recordings import look_at_everything

    import transect

    return outcome_of(lambda: look_at_everything(transect.open(path, format=format, **options)))


def outcome_of(look: Callable[[], object]) -> tuple[str, str]:
    """Return what came of looking at something, and the error: `opened`, `refused` or `untyped`."""
    from click import ClickException

    from transect.errors import TransectError

    try:
        look()
    except (TransectError, ClickException) as error:
        return "refused", type(error).__name__
    except (Exception, RecursionError) as error:  # noqa: BLE001 - that is what is looked for
        return "untyped", f"{type(error).__name__} at {_where(error)}: {error}"[:300]
    return "opened", ""


def _where(error: BaseException) -> str:
    """File and line of the last of our frames."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/transect/" in frame.filename]
    last = (ours or frames)[-1]
    return f"{Path(last.filename).parent.name}/{Path(last.filename).name}:{last.lineno}"


def empty(folder: Path) -> None:
    """Remove what is in a folder."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def status_bytes(name: str) -> int:
    """Return what the kernel says of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0


def limit_memory(more: int = MEMORY_BYTES) -> None:
    """Refuse this process more address space than it has now and `more` bytes."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (status_bytes("VmSize") + more, hard))


def forget_peak() -> None:
    """Reset the kernel's peak of the resident memory."""
    Path("/proc/self/clear_refs").write_text("5")


def keep(seed: str, folder: Path = FOUND) -> Path:
    """Write the mutation of a seed as an archive, which the tests open from then on."""
    from tests.formats.corpus import sample as load

    name = seed.partition("/")[0]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{seed.replace('/', '.')}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in mutate(load(name).files, seed).items():
            info = zipfile.ZipInfo(file)
            info.comment = content.kind.encode() if isinstance(content, Special) else b""
            archive.writestr(info, b"" if isinstance(content, Special) else content, zipfile.ZIP_DEFLATED)
    return path


def kept(path: Path) -> dict[str, bytes | Special]:
    """Return the files that `keep` wrote."""
    with zipfile.ZipFile(path) as archive:
        return {
            each.filename: Special(each.comment.decode()) if each.comment else archive.read(each)
            for each in archive.infolist()
        }
