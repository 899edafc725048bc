"""Keyword arguments become options by one rule."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from knee._options import words


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"rate": 1000}, ["--rate=1000"]),
        ({"rate": 0.00001}, ["--rate=0.00001"]),
        ({"duration": 0.5}, ["--duration=0.5"]),
        ({"duration": "5s"}, ["--duration=5s"]),
        ({"duration": timedelta(seconds=1.5)}, ["--duration=1500000us"]),
        ({"fail_if": "p99>200ms"}, ["--fail-if=p99>200ms"]),
        ({"fail_if": ["p99>0.2s", "invalid"]}, ["--fail-if=p99>0.2s", "--fail-if=invalid"]),
        ({"vusers": [1, 2, 4]}, ["--vusers=1,2,4"]),
        ({"vusers": range(1, 4)}, ["--vusers=1,2,3"]),
        ({"delays": [timedelta(milliseconds=1), 2]}, ["--delays=1000us,2"]),
        ({"for_": "forever"}, ["--for=forever"]),
        ({"no_save": True, "quiet": False, "seed": None, "header": []}, ["--no-save"]),
        ({"html": Path("a/b.html")}, ["--html=a/b.html"]),
        ({"body": "-x"}, ["--body=-x"]),
    ],
)
def test_keyword_is_an_option(options: dict[str, Any], expected: list[str]) -> None:
    assert words(options) == expected


@pytest.mark.parametrize("value", [{"a": 1}, b"x", [True], [["a"]], object()])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="^header: expected text, a number"):
        words({"header": value})
