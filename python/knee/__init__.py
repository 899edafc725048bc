"""knee, a load-testing laboratory, from Python.

>>> import knee
>>> report = knee.run("http://127.0.0.1:8080/", rate=1000, duration=5)
>>> report.p99, report.passed

Each function is a command of knee, and each keyword argument is one of its options. `fail_if` is
`--fail-if`, a list repeats it, and True is a switch. All times are in seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from typing import Union

from . import _binary
from ._binary import (
    Error,
    FailedError,
    InputError,
    Interrupted,
    InvalidError,
    NothingMeasuredError,
)
from ._measurement import Measurement, Target
from ._options import Option, words
from ._report import Comparison, Finding, Record, Report, Threshold, Times, Trial

__all__ = [
    "Comparison", "Error", "FailedError", "Finding", "InputError", "Interrupted", "InvalidError",
    "NothingMeasuredError", "Record", "Report", "Threshold", "Times", "Trial", "compare", "latency",
    "load", "overload", "recover", "run", "run_async", "sweep", "throttle", "udp",
]  # fmt: skip

# Tracebacks call an exception by the name that it is caught by.
for _class in (Error, FailedError, InputError, Interrupted, InvalidError, NothingMeasuredError):
    _class.__module__ = __name__

#: A report, or what `load` takes.
Source = Union[Report, str, "os.PathLike[str]"]


def run(target: Target | None = None, /, **options: Option) -> Report:
    """Offers one load to a server: `knee run`."""
    return Measurement("run", target, options).run()


async def run_async(target: Target | None = None, /, **options: Option) -> Report:
    """The same in asyncio. A task that is cancelled ends the run in knee's way."""
    measurement = Measurement("run", target, options)
    running = asyncio.create_task(asyncio.to_thread(measurement.run))
    try:
        return await asyncio.shield(running)
    finally:
        measurement.stop()
        with contextlib.suppress(Exception):
            await running


def sweep(target: Target | None = None, /, **options: Option) -> Report:
    """Finds a server's maximum throughput and its knee: `knee sweep`.

    Without a target it measures a server of its own.
    """
    return Measurement("sweep", target, options).run()


def overload(target: Target | None = None, /, **options: Option) -> Report:
    """Offers connections far beyond what a server accepts: `knee overload`."""
    return Measurement("overload", target, options).run()


def recover(target: Target | None = None, /, **options: Option) -> Report:
    """Finds out whether a service comes back after an overload: `knee recover`."""
    return Measurement("recover", target, options).run()


def udp(target: str | None = None, /, **options: Option) -> Report:
    """Sends datagrams and accounts for every one of them: `knee udp`."""
    return Measurement("udp", target, options).run()


def latency(target: str | None = None, /, **options: Option) -> Report:
    """Measures what parallel transfers do to latency: `knee latency`."""
    return Measurement("latency", target, options).run()


def throttle(**options: Option) -> Report:
    """Measures how this machine waits, or holds a rate: `knee throttle`."""
    return Measurement("throttle", None, options).run()


def load(source: str | os.PathLike[str], /) -> Report:
    """A report from a file, or from the history by a run's id, a baseline's name or `last`."""
    name = os.fspath(source)
    is_file = not isinstance(source, str) or os.path.exists(name) or "/" in name or "." in name
    command = ["report", name] if is_file else ["history", "show", name]
    return Report(json.loads(_binary.output([*command, "--json=-"])))


def compare(
    a: Source | Sequence[Source], b: Source | Sequence[Source], /, **options: Option
) -> Comparison:
    """Compares B with A, each a report or several: `knee compare`.

    With `live=True` they are two URLs, which are measured in turns under the load of the options.
    """
    with tempfile.TemporaryDirectory(prefix="knee-") as folder:

        def names(side: str, of: Source | Sequence[Source]) -> list[str]:
            sources = [of] if isinstance(of, (Report, str, os.PathLike)) else list(of)
            return [name(f"{side}{i or ''}", source) for i, source in enumerate(sources)]

        def name(label: str, source: Source) -> str:
            if not isinstance(source, Report):
                return os.fspath(source)
            file = os.path.join(folder, label)
            with open(file, "w", encoding="utf-8") as writer:
                json.dump(source.raw, writer)
            return file

        compared, page = (os.path.join(folder, file) for file in ("compared.json", "page.html"))
        files = [f"--json={compared}", f"--html={page}", *words(options)]
        between = [] if options.get("live") else ["--"]
        sides = [*names("a", a), *between, *names("b", b)]
        text = _binary.output(["compare", *files, *sides])

        def shown(text: str) -> str:
            # Reports are called a and b, not by the files that they were in.
            return text.replace(f"{folder}/", "")

        with open(compared, encoding="utf-8") as read, open(page, encoding="utf-8") as html:
            raw = json.loads(shown(read.read()))
            return Comparison(raw, text=shown(text), html=shown(html.read()))
