"""Keyword arguments as options of the command line, by one rule for all of them."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Union

Scalar = Union[str, "os.PathLike[str]", float, timedelta]
#: What an option can be given as; a number of an option for a time is in seconds.
Option = Union[Scalar, bool, None, Iterable[Scalar]]


def words(options: Mapping[str, Option]) -> list[str]:
    """The options of the command line for keyword arguments.

    `fail_if` is `--fail-if`, and `for_` is `--for`, as Python has a word `for`. True is a switch,
    None and False leave the option out. A list of numbers or times is one value, with commas; each
    text of a list is an option of its own.
    """
    found = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            found.append(option)
        elif value is not None and value is not False:
            found += [f"{option}={text}" for text in _texts(name, value)]
    return found


def _texts(name: str, value: Scalar | Iterable[Scalar]) -> list[str]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        return [_text(name, value)]
    parts = list(value)
    texts = [_text(name, part) for part in parts]
    are_texts = any(isinstance(part, (str, os.PathLike)) for part in parts)
    return texts if are_texts or not texts else [",".join(texts)]


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return str(value)
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)}us"
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        # Without an exponent, to the nanosecond.
        return f"{float(value):.9f}".rstrip("0").rstrip(".")
    raise TypeError(f"{name}: expected text, a number, a timedelta, True or a list, got {value!r}")
