"""One run of the binary: its arguments, its progress, its end."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import json
import logging
import os
import selectors
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Iterator, Mapping
from typing import IO, Any, Union

from . import _binary
from ._options import Option, words
from ._report import Report

#: A URL or host, a scenario file, or a scenario: YAML text of several lines, or a dict.
Target = Union[str, "os.PathLike[str]", Mapping[str, Any]]

_LOG = logging.getLogger("knee")
# Erases the progress line (ECMA-48, EL); knee writes it before each new one.
_CLEAR = "\r\x1b[K"
# Seconds between two looks at whether somebody wants the run to end.
_LOOK = 0.2


class Measurement:
    """A command that measures. `run` may be called in any thread, and `stop` in any other."""

    def __init__(self, command: str, target: Target | None, options: Mapping[str, Option]) -> None:
        if "json" in options:
            raise TypeError("json: the report is returned; report.write(json=...) writes it")
        self._command = command
        self._target = target
        self._options = words(options)
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ends the run as Ctrl-C does: with the report of what was measured."""
        self._stop.set()

    def run(self) -> Report:
        """Runs it to its end. Ctrl-C ends it in knee's way, and raises `Interrupted`."""
        with _target_word(self._target) as target:
            arguments = [self._command, *target, "--json=-", *self._options]
            exit_code, stdout, lines, is_interrupted = self._follow(arguments)
        report = Report(json.loads(stdout)) if stdout.startswith(b"{") else None
        if is_interrupted:
            raise _binary.Interrupted(report)
        if report is None or exit_code in (2, 4):
            raise _binary.failure(exit_code, lines, report)
        return report

    def _follow(self, arguments: list[str]) -> tuple[int, bytes, list[str], bool]:
        """Exit code, standard output, lines on standard error, whether Ctrl-C ended it."""
        progress = _progress()
        with tempfile.TemporaryFile() as stdout, _Reader(progress) as reader:
            process = subprocess.Popen(
                [_binary.path(), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=reader.writer,
                # Ctrl-C reaches Python alone, which sends it once.
                start_new_session=True,
                env=_binary.environment(),
            )
            try:
                is_interrupted = self._wait(process, reader)
            except BaseException:
                process.kill()
                process.wait()
                raise
            stdout.seek(0)
            return process.returncode, stdout.read(), reader.lines, is_interrupted

    def _wait(self, process: subprocess.Popen[bytes], reader: _Reader) -> bool:
        reader.close_writer()
        is_stopped = is_interrupted = False
        while True:
            try:
                is_open = reader.read(_LOOK)
                if process.poll() is not None:
                    reader.drain()
                    return is_interrupted
                if not is_open:
                    process.wait(_LOOK)
            except subprocess.TimeoutExpired:
                pass
            except KeyboardInterrupt:
                # knee ends at once at a second one, without a report.
                process.send_signal(signal.SIGINT)
                is_stopped = is_interrupted = True
            is_wanted = self._stop.is_set() or not threading.main_thread().is_alive()
            if is_wanted and not is_stopped:
                process.send_signal(signal.SIGINT)
                is_stopped = True


@contextlib.contextmanager
def _target_word(target: Target | None) -> Iterator[list[str]]:
    """The target as the command line takes it; an inline scenario is a file for as long."""
    if target is None or (isinstance(target, (str, os.PathLike)) and "\n" not in str(target)):
        yield [] if target is None else [os.fspath(target)]
        return
    is_text = isinstance(target, str)
    with tempfile.TemporaryDirectory(prefix="knee-") as folder:
        file = os.path.join(folder, "scenario.yaml" if is_text else "scenario.json")
        with open(file, "w", encoding="utf-8") as writer:
            writer.write(target if isinstance(target, str) else json.dumps(target))
        yield [file]


class _Reader:
    """Reads what knee says on standard error: lines for the log, and the progress line.

    knee shows progress on a terminal only, so where somebody wants it, it gets one.
    """

    def __init__(self, progress: _Progress | None) -> None:
        self._progress = progress
        if progress is None:
            self._fd, self.writer = os.pipe()
        else:
            self._fd, self.writer = os.openpty()
            # In one row there is no room for the live view.
            size = struct.pack("HHHH", 1, progress.columns, 0, 0)
            fcntl.ioctl(self.writer, termios.TIOCSWINSZ, size)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._fd, selectors.EVENT_READ)
        self._rest = ""
        self.lines: list[str] = []

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_writer()
        self._selector.close()
        os.close(self._fd)
        if self._progress is not None:
            self._progress.show("")

    def close_writer(self) -> None:
        """Leaves the other end to knee alone."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def drain(self) -> None:
        """Reads what is left after knee's end; its programs may hold the other end open."""
        while self.read(_LOOK) and self._selector.select(0):
            pass

    def read(self, seconds: float) -> bool:
        """Reads what comes within this time. Whether more may come."""
        if not self._selector.get_map():
            return False
        if not self._selector.select(seconds):
            return True
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # The end, of a terminal.
            data = b""
        if not data:
            self._selector.unregister(self._fd)
        *lines, self._rest = (self._rest + self._decoder.decode(data, not data)).split("\n")
        for line in filter(None, map(_last, lines)):
            self.lines.append(line)
            _LOG.info(line)
        if self._progress is not None:
            # Else it is a line that is not whole yet.
            self._progress.show(_last(self._rest) if _CLEAR in self._rest else "")
        return bool(data)


def _last(line: str) -> str:
    """What is left of a line that was rewritten."""
    return line.rsplit(_CLEAR, 1)[-1].split("\r")[0]


class _Progress:
    """Where the progress line is shown."""

    columns = 100

    def show(self, line: str) -> None:
        """Puts the line in the place of the one before."""
        raise NotImplementedError


class _TerminalProgress(_Progress):
    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self.columns = shutil.get_terminal_size().columns

    def show(self, line: str) -> None:
        self._stream.write(_CLEAR + line)
        self._stream.flush()


class _NotebookProgress(_Progress):
    def __init__(self, display: Any) -> None:
        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, line: str) -> None:
        self._handle.update({"text/plain": line}, raw=True)


def _progress() -> _Progress | None:
    """A notebook's output or the terminal; None where nobody watches."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and hasattr(ipython.get_ipython(), "kernel"):
        return _NotebookProgress(ipython.display.display)
    if sys.stderr is not None and sys.stderr.isatty():
        return _TerminalProgress(sys.stderr)
    return None
