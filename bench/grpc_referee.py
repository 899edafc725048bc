#!/usr/bin/env python3
"""Asks the official client of gRPC which answers of a server are a success.

Reads crates/engine/src/exchange/http2/client/tests/grpc_modes.txt, plays each of its answers to a call
by grpcio, of a method that returns one message and of one that returns a stream, and prints the file
with what grpcio says. With --knee PROGRAM it has knee make the same calls, which is to say what the
first two columns say. Needs grpcio and hpack of PyPI.
"""

import argparse
import json
import pathlib
import socket
import struct
import subprocess
import tempfile
import threading

import grpc
import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD = ":status=200 content-type=application/grpc"
HERE = pathlib.Path(__file__).parent.parent
MODES = HERE / "crates/engine/src/exchange/http2/client/tests/grpc_modes.txt"


def frame(kind, flags, stream, payload):
    head = struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
    return head + struct.pack(">I", stream) + payload


def literal(name, value):
    """A field without the tables of HPACK (RFC 7541 6.2.2)."""
    texts = (text.encode() for text in (name, value))
    return b"\0" + b"".join(bytes([len(text)]) + text for text in texts)


def answer(mode, stream):
    """The frames of a mode on a stream."""
    out = b""
    for part in mode.split(" | ")[1:]:
        kind, _, rest = part.partition(" ")
        ends = 1 if kind.endswith("!") else 0
        if kind[0] == "H":
            fields = (rest or HEAD).split(" ")
            pairs = (field.partition("=")[::2] for field in fields)
            out += frame(1, 4 | ends, stream, b"".join(literal(*pair) for pair in pairs))
        elif kind[0] == "D":
            out += frame(0, ends, stream, bytes.fromhex(rest))
        else:
            out += frame(3, 0, stream, struct.pack(">I", int(rest)))
    return out


def serve(connection, modes):
    """Plays the mode that a path ends with: /a.S/M7."""
    stream = connection.makefile("rwb")
    stream.read(len(PREFACE))
    stream.write(frame(4, 0, 0, b""))
    stream.flush()
    asked, decoder = {}, hpack.Decoder()
    while len(head := stream.read(9)) == 9:
        payload = stream.read(int.from_bytes(head[:3], "big"))
        kind, flags, number = head[3], head[4], int.from_bytes(head[5:], "big")
        if kind == 4 and not flags & 1:
            stream.write(frame(4, 1, 0, b""))
        elif kind == 6 and not flags & 1:
            stream.write(frame(6, 1, 0, payload))
        elif kind == 1:
            fields = dict(decoder.decode(payload))
            asked[number] = int(fields[":path"].rpartition("M")[2])
        if kind in (0, 1) and flags & 1:
            stream.write(answer(modes[asked.pop(number)], number))
        stream.flush()


def listen(modes):
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, modes), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def judged_by_grpcio(port, number, is_stream):
    # Only identity is offered, as knee does.
    options = [("grpc.compression_enabled_algorithms_bitset", 1), ("grpc.enable_retries", 0)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        call = (channel.unary_stream if is_stream else channel.unary_unary)(f"/a.S/M{number}")
        try:
            answer = call(b"", timeout=2)
            # Without a message the answer is None, whatever the status.
            return "ok" if answer is not None and (not is_stream or list(answer) is not None) else "no"
        except grpc.RpcError:
            return "no"


def judged_by_knee(knee, port, number, is_stream):
    with tempfile.NamedTemporaryFile("w", suffix=".proto") as file:
        kind = "stream N" if is_stream else "N"
        file.write(f'syntax = "proto3"; package a; message N {{}} service S {{ rpc M{number}(N) returns ({kind}); }}')
        file.flush()
        url = f"grpc://127.0.0.1:{port}/a.S/M{number}"
        command = [knee, "run", url, "--proto", file.name, "-n", "1", "-b", "{}", "--timeout", "2s", "--json", "-"]
        printed = subprocess.run(command, capture_output=True, check=False).stdout
    outcomes = json.loads(printed)["trials"][0]["outcomes"]
    return "ok" if outcomes == {"ok": 1} else "no"


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--knee", help="has this program make the calls, too")
    knee = arguments.parse_args().knee
    lines = MODES.read_text().splitlines()
    rows = [line for line in lines if not line.startswith("#")]
    modes = [row.split(" ", 4)[4] for row in rows]
    port = listen(modes)
    print("\n".join(line for line in lines if line.startswith("#")))
    differ = 0
    for number, mode in enumerate(modes):
        verdicts = [judged_by_grpcio(port, number, is_stream) for is_stream in (False, True)]
        expected = rows[number].split(" ", 2)[:2]
        print(*expected, *verdicts, mode)
        if knee:
            ours = [judged_by_knee(knee, port, number, is_stream) for is_stream in (False, True)]
            differ += ours != expected
            if ours != expected:
                print("# but knee says:", *ours)
    raise SystemExit(min(differ, 1))


main()
