"""The server for agents, as its clients see it: lines of JSON over the real binary."""

from __future__ import annotations

import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("mcp", reason="pip install 'mcp>=2'")

from knee.mcp import PAGE_BYTES, WrongArgument, page  # noqa: E402

#: No answer takes as long, however busy the machine.
PATIENCE = 120.0


class Session:
    """A server with a folder and a history of its own."""

    def __init__(self, folder: pathlib.Path, *options: str, version: str = "2025-11-25") -> None:
        self.folder = folder
        root = pathlib.Path(__file__).parent.parent
        environment = os.environ | {"PYTHONPATH": str(root), "XDG_DATA_HOME": str(folder / "data")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "knee.mcp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env=environment,
        )
        self._messages: queue.Queue[Any] = queue.Queue()
        self._next = 0
        threading.Thread(target=self._read, daemon=True).start()
        if version:
            self.greeted = self.answer(self.send("initialize", greeting(version)))["result"]
            self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._messages.put(json.loads(line))

    def bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def write(self, message: Any) -> None:
        self.bytes(json.dumps(message).encode() + b"\n")

    def send(self, method: str, params: Any) -> int:
        """Sends a request; its id."""
        self._next += 1
        self.write({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def message(self) -> Any:
        return self._messages.get(timeout=PATIENCE)

    def answer(self, request: int) -> Any:
        """The answer to a request. What comes before it is skipped."""
        while (message := self.message()).get("id") != request:
            pass
        return message

    def call(self, tool: str, arguments: Any) -> int:
        """Calls a tool, and does not wait. Its progress comes under its id."""
        meta = {"progressToken": self._next + 1}
        return self.send("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})

    def told(self, tool: str, **arguments: Any) -> tuple[Any, str]:
        """What a tool answers that succeeds: its value, and its text."""
        result = self.answer(self.call(tool, arguments))["result"]
        assert not result.get("isError"), result
        return result.get("structuredContent"), result["content"][0]["text"]

    def refused(self, tool: str, **arguments: Any) -> str:
        """The line with which a tool refuses."""
        result = self.answer(self.call(tool, arguments))["result"]
        assert result["isError"] and "structuredContent" not in result, result
        return str(result["content"][0]["text"])

    def progress(self, request: int, words: str) -> None:
        """Waits for a note on the progress of a call that has these words."""
        while True:
            params = self.message()["params"]
            if params["progressToken"] == request and words in params["message"]:
                return

    def close(self) -> int:
        """Closes its input, and waits for its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


def greeting(version: str) -> Any:
    client = {"name": "test", "version": "1"}
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": client}


@pytest.fixture
def session(tmp_path: pathlib.Path) -> Iterator[Session]:
    started = Session(tmp_path)
    yield started
    started.process.kill()


def processes_with(words: str) -> list[str]:
    """Processes with this in their command line."""
    lines = []
    for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            pass
    return [line for line in lines if words in line and "serve http" not in line]


def wait_until_none_with(words: str) -> None:
    begin = time.monotonic()
    while processes_with(words):
        assert time.monotonic() - begin < PATIENCE, processes_with(words)
        time.sleep(0.01)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_older_revisions_are_agreed_on(tmp_path: pathlib.Path, version: str) -> None:
    session = Session(tmp_path, version=version)
    assert session.greeted["protocolVersion"] == version
    assert session.greeted["serverInfo"]["name"] == "knee"
    assert "load to loopback only, for at most 600 s" in session.greeted["instructions"]
    assert session.close() == 0


def test_requests_without_a_session_are_answered(tmp_path: pathlib.Path) -> None:
    """From the revision of July 2026 on each request tells its revision, and none is first."""
    session = Session(tmp_path, version="")
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"name": "explain", "arguments": {"code": "INVALID"}, "_meta": meta}
    text = session.answer(session.send("tools/call", call))["result"]["content"][0]["text"]
    assert "INVALID" in text
    assert session.close() == 0


def test_tools_are_described(session: Session) -> None:
    tools = session.answer(session.send("tools/list", {}))["result"]["tools"]
    assert [tool["name"] for tool in tools] == [
        *["run", "sweep", "compare_targets", "compare", "report"],
        *["history", "explain", "scenario_check", "scenario_example"],
    ]
    for tool in tools:
        for name, schema in tool["inputSchema"]["properties"].items():
            assert len(schema["description"]) > 10, (tool["name"], name)
        # No tool writes a file, reads outside its checks, or sends load by another way.
        refused = "json html md csv junit hdr metrics proxy unix-socket observe fleet cert key"
        refused += " cacert allow-exec trigger-exec proto show-secrets save-baseline source"
        assert not set(refused.split()) & set(tool["inputSchema"]["properties"])
    run = tools[0]
    assert run["annotations"]["readOnlyHint"] is False
    assert run["inputSchema"]["required"] == ["url"]
    assert run["inputSchema"]["additionalProperties"] is False
    assert run["inputSchema"]["properties"]["rate"]["type"] == "number"
    assert run["inputSchema"]["properties"]["header"]["type"] == "array"
    assert run["outputSchema"]["type"] == "object"
    assert tools[6]["annotations"]["readOnlyHint"] is True


def test_unknown_tools_and_methods_are_protocol_errors(session: Session) -> None:
    error = session.answer(session.send("tools/call", {"name": "walk"}))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith("unknown tool 'walk': expected run, sweep")
    assert session.answer(session.send("tools/walk", {}))["error"]["code"] == -32601


def test_bytes_that_are_no_message_end_nothing(session: Session) -> None:
    for data in [b'{"jsonrpc": \n', b"\xff\xfe\n", b"\n", b"x" * (3 << 20) + b"\n", b"[7]\n"]:
        session.bytes(data)
        assert session.answer(session.send("ping", {}))["result"] == {}
    assert session.close() == 0


def test_run_is_measured_kept_and_paged(session: Session, url: str) -> None:
    load = {"url": url, "requests": 20, "header": ["X-A: b"], "seed": 7}
    answer, text = session.told("run", **load)
    assert (answer["result"], answer["interrupted"]) == ("passed", False)
    figures = answer["trials"][0]
    assert figures["outcomes"] == {"ok": 20}
    p50 = figures["p50_ns"]
    assert (p50["at_least"] if isinstance(p50, dict) else p50) > 0
    assert f"{answer['verdict'].upper()}  {answer['answer']}" in text
    assert text.endswith(f"Kept as run {answer['run']}: the tool report shows all of it.")
    pointer = "/trials/0/outcomes"
    shown, _ = session.told("report", run=str(answer["run"]), pointer=pointer)
    assert shown == {"pointer": pointer, "value": {"ok": 20}}
    shown, text = session.told("report")
    assert shown["value"]["seed"] == 7 and len(text) < 16_000
    wrong = session.refused("report", pointer="/trails")
    assert wrong.startswith("error: invalid pointer '/trails': '' has "), wrong
    assert url.split("/")[2] in session.told("history", limit=5)[1]
    session.told("run", **load)
    answer, text = session.told("compare", a=["1"], b=["2"])
    assert answer["rows"] and answer["answer"].split(" ")[0] in text


def test_sweep_answers_and_a_scenario_is_checked(session: Session, url: str) -> None:
    load = {"url": url, "vusers": "1,2", "duration": "200ms"}
    wrong = session.refused("sweep", **load, warmup="0s")
    assert wrong.startswith("error: unknown argument 'warmup': expected url, bound")
    answer, text = session.told("sweep", **load)
    assert [trial["label"] for trial in answer["trials"]] == ["vusers=1", "vusers=2"]
    assert "sessions:" in session.told("scenario_example")[1]
    (session.folder / "shop.yaml").write_text("target: http://127.0.0.1/\nsessions: {}\n")
    wrong = session.refused("scenario_check", file="shop.yaml")
    assert wrong.startswith("error: shop.yaml:2:11: no session")


def test_targets_are_compared(session: Session, url: str) -> None:
    answer, _ = session.told("compare_targets", a=url, b=url, vusers=1, budget="1ms")
    assert isinstance(answer["verdict"], str)


def test_wrong_arguments_get_the_line_of_the_command(session: Session) -> None:
    for arguments, expected in [
        ({"url": "http://127.0.0.1:1/", "rate": -5}, "error: --rate: '-5'"),
        ({"url": "http://127.0.0.1:1/", "duration": "soon"}, "error: --duration: 'soon'"),
        ({"url": "http://127.0.0.1:1/"}, "error: cannot connect to 127.0.0.1:1:"),
        ({"url": "absent.yaml"}, "error: absent.yaml: cannot be read: No such file"),
        ({"url": "http://h/", "json": "x"}, "error: unknown argument 'json': expected url"),
        ({"url": "--json=x"}, "error: invalid url '--json=x': it may not begin with '-'"),
        ({"url": ["a", "b"]}, "error: invalid url: expected one value"),
        ({"url": "a", "rate": {}}, "error: invalid rate {}: expected a string"),
        ({}, "error: missing argument 'url'"),
        ({"url": "http://198.51.100.9/"}, "error: may not load 198.51.100.9"),
    ]:
        line = session.refused("run", **arguments)
        assert line.startswith(expected) and "\n" not in line, line
    assert "expected past_knee" in session.refused("explain", code="past_kneee")
    line = session.refused("compare_targets", a="http://127.0.0.1:1/", b="http://198.51.100.9/")
    assert "--allow-target 198.51.100.9" in line or "127.0.0.1:1" in line
    assert "missing argument 'b': Runs of B" in session.refused("compare", a=["1"])


def test_limits_of_rate_and_time_are_kept(tmp_path: pathlib.Path, url: str) -> None:
    session = Session(tmp_path, "--rate-max", "50", "--duration-max", "2s")
    line = session.refused("run", url=url, rate=51)
    assert line == "error: --rate: 51/s is more than the --rate-max of this server, 50/s"
    answer, text = session.told("run", url=url, requests=100_000_000, vusers=1)
    assert answer["interrupted"] is True
    assert "Ended early, by the --duration-max of this server." in text
    assert "--rate-max, 50/s in all, held back" in str(answer["invalid_because"])
    assert session.close() == 0


def test_programs_are_started_only_where_that_is_permitted(
    tmp_path: pathlib.Path, url: str
) -> None:
    program = tmp_path / "program.sh"
    program.write_text("#!/bin/sh\nwhile read -r l; do echo '{\"set\": {\"x\": \"1\"}}'; done\n")
    program.chmod(0o755)
    steps = "[{get: /, exec: ./program.sh, gives: x, headers: {X: '${x}'}}]"
    scenario = f"target: {url}\nsessions: {{s: {{steps: {steps}}}}}\n"
    (tmp_path / "scenario.yaml").write_text(scenario)
    load = {"url": "scenario.yaml", "requests": 2}
    session = Session(tmp_path)
    assert "--allow-exec" in session.refused("run", **load)
    assert session.close() == 0
    session = Session(tmp_path, "--allow-exec")
    session.told("run", **load)
    assert session.close() == 0


def test_cancelled_run_ends(session: Session, url: str) -> None:
    long = {"url": url, "rate": 20, "duration": "100s"}
    first = session.call("run", long)
    session.progress(first, " of 101")
    second = session.call("run", long)
    session.progress(second, "waits for the measurement before it")
    third = session.call("run", {"url": url, "requests": 5})
    for request in (second, first):
        params = {"requestId": request, "reason": "no longer wanted"}
        session.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    assert session.answer(third)["result"]["structuredContent"]["result"] == "passed"
    # What was measured until then is kept.
    assert "(interrupted)" in session.told("history")[1]
    assert processes_with(url) == []
    assert session.close() == 0


def test_closed_input_ends_a_running_measurement(session: Session, url: str) -> None:
    session.progress(session.call("run", {"url": url, "rate": 20, "duration": "100s"}), " of 101")
    assert processes_with(url)
    assert session.close() == 0
    wait_until_none_with(url)


def test_killed_server_leaves_no_measurement(session: Session, url: str) -> None:
    session.progress(session.call("run", {"url": url, "rate": 20, "duration": "100s"}), " of 101")
    session.process.kill()
    wait_until_none_with(url)


def test_calls_beyond_the_most_are_refused_at_once(session: Session, url: str) -> None:
    """Each call that waits for its turn costs memory."""
    call = {"name": "run", "arguments": {"url": url, "duration": "60s", "connections": 1}}
    calls = [session.send("tools/call", call) for _ in range(40)]
    for request in calls[32:]:
        text = session.answer(request)["result"]["content"][0]["text"]
        assert text == "error: 32 calls are under way: call again once one ends"


def test_pages_have_all_members_once() -> None:
    document = {"items": [{"number": n} for n in range(2_000)], "text": "x" * 100_000, "c/d": 3}
    offset: int | None = 0
    seen: list[Any] = []
    while offset is not None:
        shown = page(document, "/items", offset)
        assert len(json.dumps(shown)) < PAGE_BYTES * 2
        seen += shown["value"]
        offset = shown.get("next_offset")
    assert seen == document["items"]
    outline = page(document, "", 0)
    assert len(json.dumps(outline)) < 1_000
    assert outline["value"]["items"]["omitted"].startswith("an array of 2000 items, ")
    cut = page(document, "/text", 99_990)
    assert cut["value"] == "x" * 10 and "next_offset" not in cut
    assert page(document, "/c~1d", 0)["value"] == 3


def test_missing_places_are_named() -> None:
    document = {"trials": [{"label": "a"}]}
    for pointer, expected in [
        ("trials", "invalid pointer 'trials': expected one such as /trials/0"),
        ("/trails/0", "invalid pointer '/trails/0': '' has trials"),
        ("/trials/7", "invalid pointer '/trials/7': '/trials' has an array of 1 items"),
        ("/trials/0/x", "invalid pointer '/trials/0/x': '/trials/0' has label"),
    ]:
        with pytest.raises(WrongArgument) as wrong:
            page(document, pointer, 0)
        assert str(wrong.value) == expected
