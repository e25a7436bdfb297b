"""What is done with a mutated recording beyond opening it: check, report, export, the viewer's samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .mutations import empty, outcome_of


def use(path: Path, format: str, options: Mapping[str, Any], number: int, out: Path) -> tuple[str, str]:
    """Do all of it; return what the worst came to: `opened`, `refused` or `untyped`, and the error."""
    from transect import formats

    written = formats.writing_names()
    said = [f"--option={key}={value}" for key, value in options.items()]
    empty(out)
    acts: dict[str, Callable[[], object]] = {
        "check": lambda: run("check", path, "--read-as", format, *said, "-o", out / "check"),
        "report": lambda: run(
            "report", path, "--read-as", format, *said, "--no-check", "-o", out / "report.html"
        ),
        **{
            f"export {name}": lambda name=name: run(
                "export", path, "--read-as", format, *said, "--format", name, "-o", out / f"as-{name}"
            )
            for name in (
                written[number % len(written)],
                ("rosbag", "mcap", "parquet", "cdff_msgpack")[number % 4],
            )
        },
        "view": lambda: sample_views(path, format, options),
    }
    worst = ("refused", "")
    for name, act in acts.items():
        outcome, error = outcome_of(act)
        if outcome == "untyped":
            return outcome, f"{name} {error}"
        worst = ("opened", "") if outcome == "opened" else worst
    return worst


def run(*words: object) -> None:
    """Run a command in this process."""
    from transect.cli import command

    command.main([str(word) for word in words], prog_name="transect", standalone_mode=False)


def sample_views(path: Path, format: str, options: Mapping[str, Any]) -> None:
    """Ask the viewer for what its page shows of each stream: times, curves, first and last sample."""
    import transect
    from transect.view.viewer import Viewer, ViewerScene
    from transect.view.viewer.scene import kind_of

    viewer = Viewer(ViewerScene(transect.open(path, format=format, **options)), check=False)
    try:
        for number, stream in enumerate(viewer.scene.streams):
            viewer.answer(f"times/{number}")
            shown = kind_of(stream.type) in ("picture", "points", "surface")
            for index in (0, len(stream) // 2, len(stream) - 1) if shown else ():
                viewer.answer(f"sample/{number}/{index}")
            for column in range(3):
                viewer.answer(f"curve/{number}/{column}/0/10")
        for number in range(len(viewer.scene.paths)):
            viewer.answer(f"path/{number}")
        viewer.answer("frames/0.5")
    finally:
        viewer._server.server_close()
