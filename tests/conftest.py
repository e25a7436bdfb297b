"""What all tests share: real recordings where they exist, a cache of their own, skips that may not happen.

Hypothesis draws the same examples in every run on every machine; ``--hypothesis-profile fuzz`` (`make fuzz`)
draws new ones.

Environment
-----------
TRANSECT_TEST_DATA
    Folder of real recordings; default ``../shared/data`` beside the repository.
TRANSECT_REQUIRE
    Comma-separated requirements, e.g. ``real``. A test skipped with the reason ``real: ...`` fails instead.
"""

import os
import resource
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

ROOT = Path(__file__).resolve().parent.parent
REAL_TESTS = ROOT / "tests" / "real"
REAL_DATA = Path(os.environ.get("TRANSECT_TEST_DATA") or ROOT.parent / "shared" / "data")
REQUIRED = tuple(
    f"{name.strip()}:" for name in os.environ.get("TRANSECT_REQUIRE", "").split(",") if name.strip()
)

hypothesis.settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=20,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "fuzz",
    hypothesis.settings.get_profile("default"),
    derandomize=False,
    database=None,  # every round draws new examples, and none is tried again
    max_examples=100,
)
hypothesis.settings.load_profile("default")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of real recordings (read only)."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"real: no real recordings at {REAL_DATA} (set TRANSECT_TEST_DATA)")
    return REAL_DATA


@pytest.fixture(scope="session", autouse=True)
def isolated_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the tests, and the commands that they start, out of the user's cache; one folder per worker."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSECT_CACHE_DIR", str(folder))
        patch.setenv("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / "numba"))  # compiling takes a minute
        yield folder


@pytest.fixture(scope="session", autouse=True)
def drawing_here() -> Iterator[None]:
    """Let `transect run` draw in the process of the tests: each second process imports matplotlib again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transect.cli.run.figure_process._start", lambda: None)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Pages, examples and the tutorial take longest: first, or all workers but one wait for them at the end.
    items.sort(key=lambda item: item.path.parent != ROOT / "tests")
    for item in items:
        if item.path.is_relative_to(REAL_TESTS):
            item.add_marker("real")


def _refuse_required_skip(report: pytest.TestReport | pytest.CollectReport, reason: str) -> None:
    if report.skipped and not hasattr(report, "wasxfail") and reason.startswith(REQUIRED):
        report.outcome = "failed"
        report.longrepr = f"skipped, but TRANSECT_REQUIRE asks for it: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if REQUIRED and call.excinfo is not None:
        _refuse_required_skip(report, str(call.excinfo.value))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if REQUIRED and isinstance(report.longrepr, tuple):
        _refuse_required_skip(report, report.longrepr[2].removeprefix("Skipped: "))
    return report


class RealDataCount:
    """Counts the real-data tests and says how many ran; a whole run in which none did, but could, fails."""

    def __init__(self, config: pytest.Config) -> None:
        self.outcomes: Counter[str] = Counter()
        chosen = config.option.keyword or config.option.markexpr
        everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
        self.whole_run = everything and not chosen and not config.option.collectonly

    @property
    def missing(self) -> bool:
        return self.whole_run and REAL_DATA.is_dir() and not self.outcomes["ran"]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if "real" not in report.keywords:
            return
        if report.skipped and not hasattr(report, "wasxfail"):
            self.outcomes["skipped"] += 1
        elif report.when == "call":
            self.outcomes["ran"] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.missing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None]:
        yield
        ran, skipped = self.outcomes["ran"], self.outcomes["skipped"]
        terminalreporter.write_line(f"real-data tests: {ran} ran, {skipped} skipped")
        if self.missing:
            terminalreporter.write_line(f"FAILED: {REAL_DATA} exists, and no test used it", red=True)


class CpuTime:
    """Says how many CPU seconds a run took: this process, the workers, and the processes they started."""

    def __init__(self) -> None:
        self.of_workers: list[float] = []

    def pytest_testnodedown(self, node: "WorkerController") -> None:
        self.of_workers.append(getattr(node, "workeroutput", {}).get("cpu_seconds", 0.0))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None]:
        yield
        # The workers are this process's only children, and have counted themselves.
        seconds = (
            cpu_seconds(resource.RUSAGE_SELF) + sum(self.of_workers) if self.of_workers else cpu_seconds()
        )
        terminalreporter.write_line(f"CPU time: {seconds:.0f} s, with workers and their processes")


def cpu_seconds(*of: int) -> float:
    """User and system time of this process and its finished children, or of one of the two."""
    used = [resource.getrusage(who) for who in of or (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["cpu_seconds"] = cpu_seconds()


def forget_constants() -> None:
    """Let examples not depend on which modules were imported before.

    Hypothesis parses all modules of the project that are loaded, and draws the constants that it finds there:
    seconds in every process, and other examples in another order of tests. `make fuzz` does draw them.
    """
    providers._get_local_constants = lambda: providers._local_constants


def pytest_configure(config: pytest.Config) -> None:
    if hypothesis.settings.get_current_profile_name() == "default":
        forget_constants()
    if not hasattr(config, "workerinput"):  # with xdist, the workers' reports come together here
        config.pluginmanager.register(RealDataCount(config))
        config.pluginmanager.register(CpuTime())
