"""What tests share: a server, and a place for what knee keeps."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

import knee
from knee import _binary


@pytest.fixture(scope="session", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The history of tests is not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name)))
        patch.delenv("KNEE_HISTORY", raising=False)
        yield


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """A server with one worker and a service time of 1 ms."""
    command = [_binary.path(), "serve", "http", "--listen=127.0.0.1:0", "--service=1ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"listening on (\S+)", server.stdout.readline())
        assert found is not None
        yield f"http://{found[1]}/"
        server.terminate()


@pytest.fixture(scope="session")
def report(url: str) -> knee.Report:
    """The report of a short run."""
    return knee.run(url, vusers=2, duration=0.5, warmup=0, interval=0.1, seed=7)
