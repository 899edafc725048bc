"""A server of the Model Context Protocol, so that agents measure with knee: `python -m knee.mcp`.

A client such as an editor or an agent starts it, and writes to its standard input. Each tool is a
command of knee with a choice of its options, in a process of its own. The binary judges arguments
and keeps to the limits; this server starts it, waits, and answers with what it printed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

try:
    import anyio
    import mcp.types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp.shared.exceptions import MCPError
except ImportError as missing:
    sys.exit(f"error: {missing}: install what this server needs with pip install 'mcp>=2'")

from . import _binary

#: Most calls at once, those that wait for their turn among them. Further ones are refused.
CALLS_MAX = 32
#: Longest message of a client, in bytes. Longer ones are skipped.
MESSAGE_MAX = 1 << 20
#: Seconds that a tool which sends no load may take.
READ_MAX = 60.0
#: Seconds to end and report after SIGTERM.
GRACE = 4.0
#: Bytes kept of the end of standard error: more than all lines of a failure.
SAID_MAX = 64 << 10
#: Largest document that a command may print, in bytes.
PRINTED_MAX = 256 << 20
#: Bytes of a page, and of a value within it; of a larger value only its size is shown.
PAGE_BYTES, VALUE_BYTES = 8_000, 600

_REQUEST = (
    "method header body json-body content-type user targets pick expect-status expect-body "
    "location no-keepalive http2 http2-prior-knowledge insecure secret"
).split()
_LOAD = "rate vusers connections arrival think retries timeout".split()
_URL = "URL such as http://127.0.0.1:8080/path, or a scenario file (.yaml, .json)"


@dataclass(frozen=True)
class Tool:
    """A command of knee as a tool."""

    name: str
    title: str
    #: What it does and when to use it, for a model.
    description: str
    #: The words of the command before all arguments.
    command: str
    #: Arguments without a name on the command line, in their order: their descriptions.
    places: Mapping[str, str]
    #: Options that are arguments, by the command that declares them.
    options: Mapping[str, list[str]]
    #: Makes the answer: of a measurement, a comparison, a page; None is the text as printed.
    answer: Callable[[Ended, Mapping[str, Any]], tuple[Any, str]] | None = None
    #: Whether load is sent.
    measures: bool = False
    required: tuple[str, ...] = ()


@dataclass
class Ended:
    """How a command ended, and what it printed."""

    code: int
    text: str
    document: bytes
    said: str
    #: Whether it was ended as its time was over.
    is_timed_out: bool
    #: Its entry in the history, if it was kept.
    kept: Mapping[str, Any] | None = None


class WrongArgument(Exception):
    """The message is one line for the model."""


def _measured(ended: Ended, _: Mapping[str, Any]) -> tuple[Any, str]:
    report = json.loads(ended.document)
    reasons = [reason for trial in report["trials"] for reason in trial["invalid_because"]]
    answer = {
        "run": ended.kept["id"] if ended.kept else None,
        "verdict": report["verdict"],
        "result": report["result"],
        "interrupted": report["interrupted"],
        "answer": ended.text.strip().rpartition("\n")[2].partition("  ")[2],
        "failed_because": report.get("failed_because", []),
        "invalid_because": list(dict.fromkeys(reasons)) if report["verdict"] == "invalid" else [],
        "trials": [_figures(trial) for trial in report["trials"]],
        "findings": [
            {key: finding.get(key, "") for key in ("code", "severity", "text", "next_step")}
            for finding in report["findings"]
        ],
    }
    lines = [ended.text.strip()]
    if ended.is_timed_out:
        lines.append("Ended early, by the --duration-max of this server.")
    lines += [f"INVALID: {reason}" for reason in answer["invalid_because"]]
    lines += [f"FAILED: {reason}" for reason in answer["failed_because"]]
    for finding in answer["findings"]:
        lines.append("- {severity} {code}: {text}".format(**finding))
        if finding["next_step"]:
            lines.append(f"  Next: {finding['next_step']}")
    kept = f"Kept as run {answer['run']}: the tool report shows all of it."
    lines.append(kept if ended.kept else "Not kept in the history.")
    return answer, "\n".join(lines).replace("\u00a0", " ")


def _figures(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Key figures of a trial: a number, a range or None if unknown."""
    rate = trial.get("throughput_per_s")
    figures: dict[str, Any] = {"label": trial["label"], "outcomes": trial.get("outcomes", {})}
    figures["throughput_per_s"] = trial.get("throughput_range_per_s") if rate is None else rate
    times = trial["response_time_ns"]
    ranges = times.get("ranges") or {}
    for name in ("mean", "p50", "p90", "p99", "max"):
        time = times.get(name)
        figures[f"{name}_ns"] = ranges.get(name) if time is None else time
    return figures


def _compared(ended: Ended, _: Mapping[str, Any]) -> tuple[Any, str]:
    document = json.loads(ended.document)
    differs = ("better", "worse", "different")
    answer = {key: document.get(key) for key in ("answer", "verdict", "has_invalid", "warnings")}
    rows = document["rows"]
    answer["rows"] = [row for row in rows if row["matters"] or row["verdict"] in differs]
    return answer, ended.text


def _paged(ended: Ended, arguments: Mapping[str, Any]) -> tuple[Any, str]:
    offset = arguments.get("offset", 0)
    if type(offset) is not int or offset < 0:
        raise WrongArgument("invalid offset: expected a whole number from 0 on")
    answer = page(json.loads(ended.document), arguments.get("pointer", ""), offset)
    return answer, json.dumps(answer, ensure_ascii=False)


TOOLS = [
    Tool(
        "run",
        "Measure one load",
        "Sends one load to a server and measures throughput, response times and errors. With "
        "'rate' requests start on schedule whatever the server does (open loop, what independent "
        "users do); with 'vusers' each user waits for its response (closed loop). The result says "
        "whether it is valid: an INVALID one is not the server's, and its findings say what to "
        "change. Takes 'duration' and a second of warm-up.",
        "run",
        {"url": _URL},
        {"run": [*_LOAD, "duration", "warmup", "requests", "repeat", "fail-if", *_REQUEST, "seed"]},
        _measured,
        measures=True,
        required=("url",),
    ),
    Tool(
        "sweep",
        "Find the capacity",
        "Finds the most that a server serves and its knee: the load beyond which response times "
        "grow and throughput does not. With 'bound' also the most throughput within a limit on "
        "response time. Takes up to 'budget' (60 s by default). Of a scenario only the sessions "
        "are used, not its load.",
        "sweep",
        {"url": _URL},
        {
            "sweep": [
                *"bound axis vusers rates budget duration think arrival connections".split(),
                *["timeout", "fail-if", *_REQUEST, "seed"],
            ]
        },
        _measured,
        measures=True,
        required=("url",),
    ),
    Tool(
        "compare_targets",
        "Compare two servers in turns",
        "Measures two URLs in turns under the same load and says whether B differs from A by more "
        "than chance. The best way to compare two versions that both run now. Takes up to "
        "'budget'.",
        "compare --live",
        {"a": "URL of A, the reference", "b": "URL of B, which is compared with A"},
        {"compare": ["budget"], "run": [*_LOAD, *_REQUEST]},
        _compared,
        measures=True,
        required=("a", "b"),
    ),
    Tool(
        "compare",
        "Compare runs",
        "Says whether the runs B differ from the runs A by more than chance, from their reports "
        "alone. Several runs of each side, made in alternation, tell smaller differences.",
        "compare",
        {
            "a": "Runs of A, the reference, a list: ids of runs, names of baselines, 'last', or "
            "report files; not with 'baseline'",
            "b": "Runs of B, named likewise",
        },
        {"compare": ["baseline"]},
        _compared,
        required=("b",),
    ),
    Tool(
        "report",
        "Read a report",
        "Shows a part of the whole JSON report of a run: all intervals, percentiles, stages of "
        "response times, evidence, host and options. A large value is shown as 'omitted' with its "
        "size: ask for its pointer. 'next_offset' continues a page.",
        "history show",
        {"run": "Id of a run, name of a baseline or 'last' (the default)"},
        {},
        _paged,
    ),
    Tool(
        "history",
        "List runs",
        "Lists the runs that were kept, the latest first: id, time, target, answer.",
        "history",
        {},
        {"history": ["limit", "command", "target"]},
    ),
    Tool(
        "explain",
        "Explain a finding",
        "Explains the code of a finding, or why a result is INVALID: its meaning, causes and "
        "remedy. Without a code: the list of all codes.",
        "explain",
        {"code": "Code of a finding or reason, or INVALID"},
        {},
    ),
    Tool(
        "scenario_check",
        "Check a scenario file",
        "Checks a scenario file (sessions of users: steps, data, checks) and the files that it "
        "names, without sending anything.",
        "scenario check",
        {"file": "Scenario file (.yaml, .json)"},
        {},
        required=("file",),
    ),
    Tool(
        "scenario_example",
        "Show an example of a scenario",
        "Shows a commented example of a scenario file, to write one like it. 'run' and 'sweep' "
        "take such a file in place of a URL.",
        "scenario new",
        {},
        {},
    ),
]

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_OBJECTS: dict[str, Any] = {"type": "array", "items": {"type": "object"}}
#: The schemas of answers, by what makes them.
_ANSWERS: dict[Any, dict[str, Any]] = {
    _measured: {
        "run": {"type": ["integer", "null"], "description": "Id in the history, if kept"},
        "verdict": {"enum": ["valid", "invalid"], "description": "Whether to trust the figures"},
        "result": {"enum": ["passed", "failed"]},
        "interrupted": {"type": "boolean", "description": "Whether it was ended early"},
        "answer": _TEXT,
        "failed_because": _TEXTS,
        "invalid_because": _TEXTS,
        "trials": {**_OBJECTS, "description": "Figures of each load: a number, a range or null"},
        "findings": {**_OBJECTS, "description": "The gravest first; explain tells more of a code"},
    },
    _compared: {
        "answer": _TEXT,
        "verdict": {**_TEXT, "description": "Of B against A: better, worse, different, same, …"},
        "has_invalid": {"type": "boolean", "description": "Whether a report is INVALID"},
        "warnings": _TEXTS,
        "rows": {**_OBJECTS, "description": "Figures that matter or differ"},
    },
    _paged: {
        "pointer": _TEXT,
        "value": {},
        "offset": {"type": "integer"},
        "length": {"type": "integer", "description": "Number of all members"},
        "next_offset": {"type": "integer", "description": "Absent on the last page"},
    },
}


def _described(tool: Tool, options: Mapping[str, Any]) -> types.Tool:
    """A tool as clients see it; `options`: the schemas of all options, by their commands."""
    several = tool.name == "compare"
    properties: dict[str, Any] = {
        name: {**(_TEXTS if several else _TEXT), "description": description}
        for name, description in tool.places.items()
    }
    if tool.answer is _paged:
        pointer = "JSON Pointer of the part, such as /trials/0/outcomes"
        properties["pointer"] = {**_TEXT, "description": pointer}
        first = "Number of the first member to show; the first is 0"
        properties["offset"] = {"type": "integer", "minimum": 0, "description": first}
    for command, names in tool.options.items():
        properties.update({name: options[command][name] for name in names})
    answer = _ANSWERS.get(tool.answer)
    required = [name for name in answer or {} if tool.answer is not _paged]
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema={
            "type": "object",
            "properties": properties,
            "required": list(tool.required),
            "additionalProperties": False,
        },
        output_schema=answer
        and {"type": "object", "properties": answer, "required": required or ["pointer", "value"]},
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.measures, destructive_hint=False, open_world_hint=tool.measures
        ),
    )


def words(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """The words behind the command, none of which can be taken for another."""
    options = [name for names in tool.options.values() for name in names]
    pages = ["pointer", "offset"] if tool.answer is _paged else []
    known = [*tool.places, *pages, *options]
    for name in arguments:
        if name not in known:
            raise WrongArgument(f"unknown argument '{name}': expected {', '.join(known)}")
    found: list[str] = []
    for name in options:
        value = arguments.get(name)
        if value is True:
            found.append(f"--{name}")
        elif value is not False:
            found += [f"--{name}={text}" for text in _texts(name, value)]
    places: list[str] = []
    for name in tool.places:
        given = _texts(name, arguments.get(name))
        if not given and name in tool.required:
            raise WrongArgument(f"missing argument '{name}': {tool.places[name]}")
        if len(given) > 1 and tool.name != "compare":
            raise WrongArgument(f"invalid {name}: expected one value")
        for text in given:
            if text.startswith("-"):
                raise WrongArgument(f"invalid {name} '{text}': it may not begin with '-'")
        places += ["--", *given] if places and tool.name == "compare" else given
    return found + places


def _texts(name: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list) and not any(isinstance(part, list) for part in value):
        return [text for part in value for text in _texts(name, part)]
    if isinstance(value, str) or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return [str(value)]
    raise WrongArgument(f"invalid {name} {json.dumps(value)}: expected a string, number or list")


def page(document: Any, pointer: str, offset: int) -> dict[str, Any]:
    """The value at a JSON Pointer (RFC 6901): whole where it is small, otherwise its members from
    number `offset` on, as many as fit."""
    value = _at(document, pointer)
    if len(_json(value)) <= PAGE_BYTES and offset == 0:
        return {"pointer": pointer, "value": value}
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, (list, str)):
        members = list(enumerate(value))
    else:
        return {"pointer": pointer, "value": value, "offset": offset, "length": 1}
    room = PAGE_BYTES
    taken: list[tuple[Any, Any]] = []
    for name, member in members[offset:]:
        small = VALUE_BYTES if isinstance(value, dict) else PAGE_BYTES // 2
        size = len(_json(member))
        if size > small:
            member = {"omitted": f"{_kind(member)}, {size} bytes: ask for its pointer"}
        room -= len(_json(member)) + (len(str(name)) if isinstance(value, dict) else 0)
        if room < 0 and taken:
            break
        taken.append((name, member))
    shown: Any = dict(taken) if isinstance(value, dict) else [member for _, member in taken]
    if isinstance(value, str):
        shown = "".join(shown)
    found = {"pointer": pointer, "value": shown, "offset": offset, "length": len(members)}
    if offset + len(taken) < len(members):
        found["next_offset"] = offset + len(taken)
    return found


def _at(document: Any, pointer: str) -> Any:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise WrongArgument(f"invalid pointer '{pointer}': expected one such as /trials/0")
    value, place = document, ""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            what = ", ".join(value) if isinstance(value, dict) else _kind(value)
            raise WrongArgument(f"invalid pointer '{pointer}': '{place}' has {what}")
        place += f"/{part}"
    return value


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return f"object of {len(value)} members"
    if isinstance(value, list):
        return f"an array of {len(value)} items"
    return "a value without members"


class KneeServer:
    """The tools of knee, within limits."""

    def __init__(self, limits: Mapping[str, Any], allow_exec: bool) -> None:
        self._environment = os.environ | {
            "KNEE_CONFINED": json.dumps(limits),
            "KNEE_PARENT": str(os.getpid()),
        }
        self._limits = limits
        self._allow_exec = allow_exec
        # Two measurements would disturb each other.
        self._turn = anyio.Lock()
        self._calls = 0
        command = [_binary.path(), "option-schemas"]
        printed = subprocess.run(command, env=self._environment, capture_output=True, text=True)
        if printed.returncode:
            sys.exit(printed.stderr.strip())
        options = json.loads(printed.stdout)
        self._tools = [_described(tool, options) for tool in TOOLS]

    async def serve(self) -> None:
        """Serves until standard input ends."""
        limits = self._limits
        rate = limits["rate_max"]
        instructions = (
            "knee measures what servers carry: throughput, response times, capacity. It may send "
            f"load to {', '.join(['loopback', *limits['targets']])} only,"
            f"{f' at most {rate:g} operations per second,' if rate else ''} for at most "
            f"{limits['duration_max'] / 1e9:g} s per measurement. One measurement is made at a "
            "time; further calls wait. Trust figures of VALID results only; follow the next steps "
            "of findings, whose options --NAME are arguments NAME here. Files are read below "
            f"{limits['folder']}."
        )
        server: Any = Server(
            "knee",
            version=_binary.output(["--version"]).split()[-1],
            instructions=instructions,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        lines: Any = _Lines(sys.stdin.buffer)
        async with stdio_server(stdin=lines) as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())

    async def _list(self, *_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def _call(self, context: Any, params: types.CallToolRequestParams) -> Any:
        tool = next((tool for tool in TOOLS if tool.name == params.name), None)
        if tool is None:
            names = ", ".join(tool.name for tool in TOOLS)
            line = f"unknown tool '{params.name}': expected {names}"
            raise MCPError(types.INVALID_PARAMS, line)
        if self._calls == CALLS_MAX:
            return _failed(f"{CALLS_MAX} calls are under way: call again once one ends")
        self._calls += 1
        try:
            return await self._answer(tool, params.arguments or {}, context.session.report_progress)
        except WrongArgument as wrong:
            return _failed(str(wrong))
        finally:
            self._calls -= 1

    async def _answer(self, tool: Tool, arguments: Mapping[str, Any], report: Any) -> Any:
        given = words(tool, arguments)
        reports = tool.answer is not None
        if not tool.measures:
            ended = await self._run(tool.command, given, reports, READ_MAX, _Progress())
        else:
            if self._allow_exec and tool.answer is _measured:
                given.insert(0, "--allow-exec")
            progress = _Progress("waits for the measurement before it")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(progress.tell, report)
                async with self._turn:
                    limit = self._limits["duration_max"] / 1e9
                    ended = await self._run(tool.command, given, reports, limit, progress)
                tasks.cancel_scope.cancel()
        # 1 and 3 tell what was measured, 128 and more that it was ended.
        if ended.code not in (0, 1, 3) and ended.code < 128 or (reports and not ended.document):
            if any(line.startswith("error: ") for line in ended.said.splitlines()):
                return _failed(ended.said, "")
            return _failed(f"the command ended with exit code {ended.code}")
        if tool.answer is None:
            return types.CallToolResult(content=[_text(ended.text)])
        if tool.answer is _measured:
            ended.kept = await self._kept(json.loads(ended.document))
        answer, text = tool.answer(ended, arguments)
        return types.CallToolResult(content=[_text(text)], structured_content=answer)

    async def _kept(self, report: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The entry of a run in the history."""
        ended = await self._run("history", ["--limit=8"], True, READ_MAX, _Progress())
        runs = json.loads(ended.document)["runs"] if ended.document else []
        same = ("command", "started_at", "seed")
        return next((run for run in runs if all(run[k] == report[k] for k in same)), None)

    async def _run(
        self, command: str, given: list[str], reports: bool, limit: float, progress: _Progress
    ) -> Ended:
        """Runs a command to its end. After `limit` seconds, or when the call is cancelled, it is
        asked to end, and killed if it does not. `reports`: it writes JSON beside its text."""
        with tempfile.TemporaryFile() as document, tempfile.TemporaryFile() as text:
            target = [f"--json=/dev/fd/{document.fileno()}"] if reports else []
            process = await anyio.open_process(
                [_binary.path(), *command.split(), *target, *given],
                stdin=subprocess.DEVNULL,
                stdout=text,
                stderr=subprocess.PIPE,
                cwd=self._limits["folder"],
                env=self._environment,
                pass_fds=[document.fileno()],
                start_new_session=True,
            )
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(progress.hear, process.stderr)
                try:
                    with anyio.move_on_after(limit) as waiting:
                        await process.wait()
                finally:
                    with anyio.CancelScope(shield=True):
                        await _end(process)
                # Programs of a scenario may hold the other end open.
                tasks.cancel_scope.deadline = anyio.current_time() + GRACE
            code = process.returncode if process.returncode is not None else 0
            return Ended(
                code if code >= 0 else 128 - code,
                _read(text).decode(errors="replace"),
                _read(document),
                progress.errors(),
                waiting.cancelled_caught,
            )


async def _end(process: Any) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with anyio.move_on_after(GRACE):
            await process.wait()
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _read(file: BinaryIO | Any) -> bytes:
    file.seek(0)
    return bytes(file.read(PRINTED_MAX))


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


def _failed(line: str, begin: str = "error: ") -> types.CallToolResult:
    """An answer that says what is wrong, so that the model can mend it."""
    return types.CallToolResult(content=[_text(begin + line)], is_error=True)


class _Progress:
    """What a command says on standard error: its progress, and its errors."""

    def __init__(self, before: str = "") -> None:
        self._before = before
        self._said = b""
        self._began = time.monotonic()

    async def hear(self, stderr: Any) -> None:
        """Keeps the end of what is said."""
        self._before = "starting"
        async for data in stderr:
            self._said = (self._said + data)[-SAID_MAX:]

    async def tell(self, report: Any) -> None:
        """Sends the last line each second; the progress is the time since the call, in seconds."""
        while True:
            lines = re.split(r"\r\x1b\[K|[\r\n]", self._said.decode(errors="replace"))
            shown = [line.lstrip("━┄=. ").rstrip() for line in lines]
            line = next(filter(None, reversed(shown)), self._before)
            await report(time.monotonic() - self._began, None, line)
            await anyio.sleep(1)

    def errors(self) -> str:
        """What was said beside the progress, without empty lines."""
        lines = self._said.decode(errors="replace").split("\n")
        lines = [line.rpartition("\x1b[K")[2].rstrip() for line in lines]
        return "\n".join(filter(None, lines))


class _Lines:
    """Lines of a stream; one that is too long is empty."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        line: bytes = await anyio.to_thread.run_sync(self._line, abandon_on_cancel=True)
        if not line:
            raise StopAsyncIteration
        return line.decode(errors="replace")

    def _line(self) -> bytes:
        line = part = self._stream.readline(MESSAGE_MAX)
        while part and not part.endswith(b"\n"):
            line, part = b"\n", self._stream.readline(MESSAGE_MAX)
        return line


def _seconds(text: str) -> float:
    units = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    if found is None or not float(found[1]):
        raise argparse.ArgumentTypeError(f"'{text}' is no time such as 10m")
    return float(found[1]) * units[found[2]]


def main() -> None:
    """Serves the client at standard input and output."""
    parser = argparse.ArgumentParser(
        "python -m knee.mcp",
        description="Serve the Model Context Protocol, so that agents measure with knee. A client "
        "starts it. It sends load to loopback only, until --allow-target names networks. Tools "
        "read files below the working folder, and write none.",
    )
    parser.add_argument(
        "--allow-target", metavar="CIDR", action="append", default=[],
        help="network that load may be sent to, such as 10.0.0.0/8; repeatable",
    )  # fmt: skip
    parser.add_argument("--rate-max", metavar="N", type=float, help="most operations per second")
    parser.add_argument(
        "--duration-max", metavar="T", type=_seconds, default=600.0,
        help="longest time of a measurement, which is ended then (default: 10m)",
    )  # fmt: skip
    parser.add_argument(
        "--allow-exec", action="store_true",
        help="permit scenarios to start the programs that their steps name under 'exec'; no limit "
        "holds for these",
    )  # fmt: skip
    given = parser.parse_args()
    if given.rate_max is not None and not given.rate_max >= 1:
        parser.error("argument --rate-max: expected at least 1 operation per second")
    limits = {
        "targets": given.allow_target,
        "rate_max": given.rate_max,
        "duration_max": round(given.duration_max * 1e9),
        "folder": os.path.realpath("."),
    }
    if sys.stdin.isatty():
        print("a client is to start this, and to write to standard input", file=sys.stderr)
    anyio.run(KneeServer(limits, given.allow_exec).serve)


if __name__ == "__main__":
    main()
