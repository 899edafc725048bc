"""Runs against a real server: results, errors, interruption, threads, asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import knee
from knee._measurement import Measurement

LONG: dict[str, Any] = {"duration": 120, "vusers": 1, "warmup": 0, "interval": "50ms"}
# No test takes as long, however busy the machine.
PATIENCE = 60


def wait_until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    """Processes that this one started and that have not ended."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue
        if f"\nPPid:\t{pid}\n" in text and "\nState:\tZ" not in text:
            found.append(int(status.parent.name))
    return found


def is_alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "\nState:\tZ" not in status.read_text()


def script(body: str) -> subprocess.Popen[str]:
    """A Python of its own that runs this."""
    command = [sys.executable, "-c", f"import knee, sys\n{body}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def started(python: subprocess.Popen[str], log: Path) -> int:
    """The knee that a script started, once its load runs and its log has an interval."""

    def logs() -> bool:
        # The log has its name at the end.
        parts = log.parent.glob(f".{log.name}*")
        return any(part.read_text().count("\n") > 5 for part in parts)

    wait_until(logs)
    return children(python.pid)[0]


def test_thresholds_are_judged(url: str) -> None:
    short = {"requests": 20, "vusers": 1}
    crossed = knee.run(url, fail_if=["throughput<1M", "errors>50%"], **short)
    assert not crossed.passed and len(crossed.failed_because) == 1
    assert [bool(t.crossed) for t in crossed.thresholds] == [True, False]
    assert knee.run(url, fail_if="errors>50%", **short).passed


def test_load_that_was_not_offered_is_invalid(url: str) -> None:
    report = knee.run(url, rate=10_000_000, duration=0.02, warmup=0, threads=1, timeout=0.1)
    assert not report.valid and report.trials[0].invalid_because
    with pytest.raises(knee.InvalidError, match="^INVALID: ."):
        report.check()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"rat": 5}, "--rat: unknown; did you mean --rate?"),
        ({"rate": "much"}, "--rate: 'much' is not a rate: give"),
        ({"fail_if": "p99"}, "--fail-if: "),
        ({"html": "/nowhere/page.html"}, "--html: '/nowhere/page.html' cannot be written"),
    ],
)
def test_wrong_options_raise_the_line_of_knee(url: str, options: Any, line: str) -> None:
    with pytest.raises(knee.InputError) as e:
        knee.run(url, **options)
    assert str(e.value).startswith(line) and e.value.exit_code == 2 and e.value.report is None


def test_target_that_is_not_there_raises() -> None:
    with pytest.raises(knee.NothingMeasuredError, match="connection refused") as e:
        knee.run("http://127.0.0.1:1/")
    assert e.value.exit_code == 4


def test_report_is_kept_though_a_file_is_not_written(url: str, tmp_path: Path) -> None:
    full = tmp_path / "full.csv"
    full.symlink_to("/dev/full")
    with pytest.raises(knee.InputError, match="full.csv") as e:
        knee.run(url, requests=5, csv=full)
    assert e.value.report is not None and e.value.report.outcomes == {"ok": 5}


def test_json_is_named_as_returned() -> None:
    with pytest.raises(TypeError, match="^json: the report is returned"):
        knee.run("http://127.0.0.1:1/", json="report.json")


def test_binary_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KNEE_BIN", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("importlib.metadata.files", lambda _: None)
    with pytest.raises(FileNotFoundError, match="set KNEE_BIN"):
        knee.run("http://127.0.0.1:1/")


SCENARIO = {"sessions": {"reader": {"steps": [{"get": "/a", "name": "a"}, {"get": "/b"}]}}}


def test_scenarios_are_files_texts_and_dicts(url: str, tmp_path: Path) -> None:
    text = f"target: {url}\nsessions:\n  reader:\n    steps: [get: /a, get: /b]\n"
    file = tmp_path / "reader.yaml"
    file.write_text(text)
    for target in (file, str(file), text, {"target": url, **SCENARIO}):
        report = knee.run(target, requests=3, vusers=1)
        assert report.outcomes == {"ok": 6}
    with pytest.raises(knee.InputError, match="sesions"):
        knee.run(text.replace("sessions", "sesions"))


def test_other_experiments_report_their_conclusion(url: str) -> None:
    sweep = knee.sweep(url, vusers=[1, 2], duration=0.2, warmup=0)
    assert [level.level.vusers for level in sweep.conclusion.levels] == [1, 2]
    waits = knee.throttle(methods="sleep", delays=[0.001], duration=0.05)
    assert waits.conclusion.table[0].delay_s == 0.001
    assert waits.conclusion.table[0].mean_s >= 0.001
    datagrams = knee.udp(datagrams=50, rate=1000)
    assert datagrams.trials[0].attempted == 50


def test_comparisons_take_reports_and_files(report: knee.Report, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    report.write(json=file)
    assert knee.load(file) == report
    sides: list[tuple[Any, Any]] = [(report, file), ([report, file], [report, report])]
    for a, b in sides:
        comparison = knee.compare(a, b)
        assert {row.verdict for row in comparison.rows} <= {"same", "unknown"}
        assert comparison.answer in " ".join(str(comparison).split())
        assert "<iframe" in comparison._repr_html_()
    with pytest.raises(knee.InputError, match="^nothing.json: "):
        knee.compare(report, "nothing.json")


def test_history_has_the_last_run(url: str) -> None:
    report = knee.run(url, requests=3, seed=4711)
    assert knee.load("last").started_at == report.started_at


def test_interruption_gives_what_was_measured(url: str, tmp_path: Path) -> None:
    log = tmp_path / "log.hdr"
    python = script(
        f"""
try:
    knee.run({url!r}, hdr={str(log)!r}, **{LONG})
except KeyboardInterrupt as e:
    print(type(e).__name__, e.report.interrupted, e.report.outcomes["ok"] > 0)
"""
    )
    run = started(python, log)
    python.send_signal(signal.SIGINT)
    out, err = python.communicate(timeout=PATIENCE)
    assert (out, err) == ("Interrupted True True\n", "")
    assert not is_alive(run)


def test_terminal_interrupts_once(url: str, tmp_path: Path) -> None:
    """Ctrl-C in a terminal goes to all of its processes, and knee takes two as an abort."""
    log = tmp_path / "log.hdr"
    shown, body = b"", f"import knee\nknee.run({url!r}, hdr={str(log)!r}, **{LONG})"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", body])
    try:
        while b"p50" not in shown:
            shown += os.read(terminal, 4096)
        run = children(pid)[0]
        os.write(terminal, b"\x03")
        while chunk := os.read(terminal, 4096):
            shown += chunk
    except OSError:  # The end of the terminal's last process.
        pass
    os.waitpid(pid, 0)
    os.close(terminal)
    text = shown.decode()
    assert re.search(r"vusers=1\b.* of 120.*/s.*p50", text), text
    assert "knee.Interrupted" in text and "the exception's .report has what" in text
    assert not is_alive(run)


def test_second_interruption_aborts(url: str, tmp_path: Path) -> None:
    log = tmp_path / "log.hdr"
    # The user's session goes on after the first signal: its teardown takes long.
    scenario: dict[str, Any] = {"target": url, **SCENARIO}
    scenario["teardown"] = [{"get": "/"}, {"think": "100s"}, {"get": "/"}]
    python = script(f"knee.run({scenario!r}, hdr={str(log)!r}, **{LONG})")
    run = started(python, log)
    for _ in range(50):
        if python.poll() is not None:
            break
        python.send_signal(signal.SIGINT)
        time.sleep(0.3)
    _, err = python.communicate(timeout=PATIENCE)
    assert "Interrupted" in err
    assert not is_alive(run)


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_python(url: str, tmp_path: Path, kill: signal.Signals) -> None:
    log = tmp_path / "log.hdr"
    python = script(f"knee.run({url!r}, hdr={str(log)!r}, **{LONG})")
    run = started(python, log)
    python.send_signal(kill)
    python.communicate(timeout=PATIENCE)
    wait_until(lambda: not is_alive(run))


def test_end_of_the_main_thread_ends_runs(url: str, tmp_path: Path) -> None:
    log = tmp_path / "log.hdr"
    call = f"knee.run({url!r}, hdr={str(log)!r}, **{LONG})"
    python = script(
        f"""
import threading, time
threading.Thread(target=lambda: print({call}.interrupted)).start()
time.sleep(100)
"""
    )
    started(python, log)
    python.send_signal(signal.SIGINT)
    out, _ = python.communicate(timeout=PATIENCE)
    assert out == "True\n"


def test_threads_run_at_the_same_time(url: str) -> None:
    with concurrent.futures.ThreadPoolExecutor() as threads:
        running = [threads.submit(knee.run, url, requests=n, vusers=1) for n in (3, 5)]
        assert [run.result().outcomes["ok"] for run in running] == [3, 5]


def test_asyncio_runs_and_cancels(url: str) -> None:
    async def together() -> list[knee.Report]:
        return await asyncio.gather(*(knee.run_async(url, requests=n, vusers=1) for n in (3, 5)))

    async def cancelled(wait: float) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(knee.run_async(url, **LONG), wait)

    assert [report.outcomes["ok"] for report in asyncio.run(together())] == [3, 5]
    begin = time.monotonic()
    for wait in (0.01, 0.5):
        asyncio.run(cancelled(wait))
    assert time.monotonic() - begin < PATIENCE
