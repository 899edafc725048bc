"""The examples of the documentation run, with options that knee knows."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import knee
from knee import _binary
from knee._measurement import Measurement

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["python/README.md", "docs/src/howto/python.md"])
def test_examples_run(
    page: str, report: knee.Report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def accepted(self: Measurement) -> knee.Report:
        # Options before --help are read, and no load is made.
        _binary.output([self._command, "http://127.0.0.1/", *self._options, "--help"])
        return report

    monkeypatch.setattr(Measurement, "run", accepted)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"asyncio": asyncio}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert blocks
    for block in blocks:
        if "_frame(" in block:
            pytest.importorskip("pandas")
        exec(block, names)
    for name, value in names.items():
        if name.startswith("test_"):
            monkeypatch.setattr(knee.Report, "check", lambda self: self)
            value()
    if "both" in names:
        assert asyncio.run(names["both"]()) == [report, report]
