"""The binary: where it is, what it says where it fails, and its answers to short questions."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._report import Report


class Error(Exception):
    """knee could not do what it was asked for. The message is its own line."""

    def __init__(self, line: str, exit_code: int = 2, report: Report | None = None) -> None:
        super().__init__(line)
        #: The exit code of the command line.
        self.exit_code = exit_code
        #: What was measured nevertheless, if anything.
        self.report = report


class InputError(Error):
    """Exit code 2: wrong arguments or input, or a limit of this machine."""


class NothingMeasuredError(Error):
    """Exit code 4: the target could not be reached, or nothing was measured."""


class FailedError(Error):
    """Exit code 1, raised by `Report.check` alone: a `fail_if` was crossed, or all failed."""


class InvalidError(Error):
    """Exit code 3, raised by `Report.check` alone: the figures cannot be trusted."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the run; `report` has what was measured until then, if anything."""

    def __init__(self, report: Report | None) -> None:
        super().__init__("the exception's .report has what was measured" if report else "")
        self.report = report


def path() -> str:
    """The binary: what KNEE_BIN names, else that of this wheel, else `knee` on the PATH."""
    named = os.environ.get("KNEE_BIN")
    if named:
        return named
    try:
        files = importlib.metadata.files("knee") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    shipped = [str(file.locate()) for file in files if file.name == "knee"]
    # Where `pip install --target` puts it.
    shipped.append(os.path.join(os.path.dirname(__file__), "../bin/knee"))
    found = next(filter(os.path.isfile, shipped), None) or shutil.which("knee")
    if found is None:
        raise FileNotFoundError("no knee in this package nor on the PATH: set KNEE_BIN to its path")
    return os.path.normpath(found)


def environment() -> dict[str, str]:
    """The environment of knee: it ends when Python ends, however that happens."""
    return os.environ | {"KNEE_PARENT": str(os.getpid())}


def output(arguments: Sequence[str], stdin: str | None = None) -> str:
    """What a command that measures nothing prints. Raises where it fails."""
    ended = subprocess.run(
        [path(), *arguments],
        input=stdin,
        stdin=None if stdin is not None else subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env=environment(),
    )
    if ended.returncode in (2, 4) or ended.returncode < 0:
        raise failure(ended.returncode, ended.stderr.splitlines())
    return ended.stdout


def failure(exit_code: int, lines: Sequence[str], report: Report | None = None) -> Error:
    """The exception for an exit code, with knee's line on standard error."""
    said = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    line = said[-1] if said else f"knee wrote no report and ended with {exit_code}"
    kind = {2: InputError, 4: NothingMeasuredError}.get(exit_code, Error)
    return kind(line, exit_code, report)
