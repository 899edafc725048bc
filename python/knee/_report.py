"""Reports as objects: the JSON of knee, with times in seconds."""

from __future__ import annotations

import functools
import html
import json
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _binary
from ._options import Option, words

if TYPE_CHECKING:
    import pandas

_NANOSECONDS = re.compile(r"(?<![^_])ns(?![^_])")
# Numbers inside times that are no times (docs/src/reference/report.md).
_NO_TIMES = ("count", "percentile")
_HEIGHT = "640px"


def _name(key: str) -> str:
    """The name of a key of the JSON: `p99_ns` is `p99_s`."""
    return _NANOSECONDS.sub("s", key)


class Record(Mapping[str, Any]):
    """A part of a report: its values are attributes and items by the same names.

    Times are in seconds: the key `p99_ns` of the JSON is `p99_s`. `raw` is the JSON as it is.
    """

    def __init__(self, raw: Mapping[str, Any], *, is_time: bool = False) -> None:
        """Wraps an object of the JSON. `is_time`: its numbers are nanoseconds."""
        self.raw = raw
        self._is_time = is_time
        self._keys = {_name(key): key for key in raw}

    def __getitem__(self, name: str) -> Any:
        key = self._keys[name]
        is_time = (self._is_time or name != key) and name not in _NO_TIMES
        return _value(self.raw[key], is_time, _kind(self._fields().get(name)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "raw":
            raise AttributeError(name)
        if name in self._keys:
            return self[name]
        if name in self._fields():
            # The JSON leaves out what does not apply.
            return () if typing.get_origin(self._fields()[name]) is tuple else None
        what = f"{type(self).__name__} has no {name!r}; it has: {', '.join(self)}"
        raise AttributeError(what, name=name, obj=self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        def short(value: Any) -> str:
            if isinstance(value, (Mapping, tuple)) and len(value) > 3:
                return f"<{len(value)}>"
            return repr(value)

        values = ", ".join(f"{name}={short(self[name])}" for name in self)
        return f"{type(self).__name__}({values})"

    @classmethod
    @functools.cache
    def _fields(cls) -> dict[str, Any]:
        """The names that every report has, with their types."""
        return typing.get_type_hints(cls)


def _kind(hint: Any) -> type[Record]:
    """The class for what a field of this type holds: `Trial` of `tuple[Trial, ...]`."""
    args = typing.get_args(hint)
    if not args and isinstance(hint, type) and issubclass(hint, Record):
        return hint
    for kind in map(_kind, args):
        if kind is not Record:
            return kind
    return Record


def _value(value: Any, is_time: bool, kind: type[Record] = Record) -> Any:
    if isinstance(value, dict):
        return kind(value, is_time=is_time)
    if isinstance(value, list):
        return tuple(_value(part, is_time, kind) for part in value)
    if is_time and isinstance(value, (int, float)) and not isinstance(value, bool):
        return value / 1e9
    return value


class Figures(Record):
    """Figures of times in seconds. One that the observations do not tell is None."""

    min: float | None
    mean: float | None
    p50: float | None
    p75: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p999: float | None
    max: float | None


_FIGURES = tuple(Figures.__annotations__)


class Times(Figures):
    """A distribution of times."""

    count: int
    mean_ci95: tuple[float, float] | None
    p50_ci95: tuple[float, float] | None
    p75_ci95: tuple[float, float] | None
    p90_ci95: tuple[float, float] | None
    p95_ci95: tuple[float, float] | None
    p99_ci95: tuple[float, float] | None
    p999_ci95: tuple[float, float] | None
    ranges: Record | None
    spectrum: tuple[Record, ...]


class Trial(Record):
    """One load on one target."""

    label: str
    kind: str
    verdict: str
    invalid_because: tuple[str, ...]
    duration_s: float
    attempted: int
    completed: int
    outcomes: Mapping[str, int]
    throughput_per_s: float | None
    throughput_ci95_per_s: tuple[float, float] | None
    throughput_range_per_s: Record | None
    goodput_per_s: float | None
    response_time_s: Times
    service_time_s: Times
    offered: Record
    generator: Record
    intervals: tuple[Record, ...]


class Finding(Record):
    """What a person should know, with its evidence and what to do next."""

    code: str
    severity: str
    text: str
    evidence: Mapping[str, float]
    next_step: str


class Threshold(Record):
    """A `fail_if`, and whether it was kept."""

    expression: str
    crossed: tuple[str, ...]
    kept: tuple[str, ...]
    undecided: tuple[str, ...]
    undetermined: tuple[str, ...]


if TYPE_CHECKING:

    class _OnlyTrial(Figures):
        """What a report of one trial has of that."""

        response_time_s: Times
        throughput_per_s: float | None
        goodput_per_s: float | None
        outcomes: Mapping[str, int]

else:
    _OnlyTrial = Record


class Report(_OnlyTrial):
    """What an experiment measured and what follows from it.

    `print` shows it as `knee report` does, and a notebook shows its page. A report of one trial has
    the figures of that trial too, in seconds and per second.
    """

    command: str
    verdict: str
    result: str
    failed_because: tuple[str, ...]
    interrupted: bool
    findings: tuple[Finding, ...]
    thresholds: tuple[Threshold, ...]
    conclusion: Record
    trials: tuple[Trial, ...]
    host: Record
    spec: Record
    seed: int
    started_at: str
    knee_version: str
    schema: str

    @property
    def valid(self) -> bool:
        """Whether the figures can be trusted: the generator measured the target, not itself."""
        return self.verdict == "valid"

    @property
    def passed(self) -> bool:
        """Whether the target did what was asked. Says little where the report is not `valid`."""
        return self.result == "passed"

    def check(self) -> Report:
        """Returns this report if it is valid and passed.

        Raises `InvalidError` or `FailedError`, with the reasons and the report.
        """
        if not self.valid:
            reasons = [reason for trial in self.trials for reason in trial.invalid_because]
            line = "INVALID: " + "; ".join(reasons or ["see .findings"])
            raise _binary.InvalidError(line, 3, self)
        if not self.passed:
            raise _binary.FailedError("failed: " + "; ".join(self.failed_because), 1, self)
        return self

    def render(self, form: str = "text") -> str:
        """The report as `text`, `full` (the whole text), `html`, `md`, `csv`, `junit` or `json`."""
        named: dict[str, list[str]] = {"text": [], "full": ["--full"]}
        option = named.get(form, [f"--{form}=-"])
        return _binary.output(["report", "-", *option], self._json())

    def write(self, **files: Option) -> None:
        """Writes files, by the options of `knee report`: `write(html="page.html")`."""
        _binary.output(["report", "-", *words(files)], self._json())

    def percentiles_frame(self) -> pandas.DataFrame:
        """The figures of response times in seconds: a row for each trial and figure.

        A figure has its 95 % confidence interval, or the bounds of one that is not determined.
        """
        columns = ("value_s", "ci95_low_s", "ci95_high_s", "at_least_s", "at_most_s")
        rows, nothing = [], Record({})
        for trial in self.trials:
            times = trial.response_time_s
            for figure in _FIGURES:
                low, high = times.get(f"{figure}_ci95") or (None, None)
                bounds = (times.ranges or nothing).get(figure, nothing)
                values: list[Any] = [times[figure], low, high]
                values += [bounds.get("at_least"), bounds.get("at_most")]
                rows.append({"trial": trial.label, "figure": figure, **dict(zip(columns, values))})
        return _frame(rows, dict.fromkeys(columns, float))

    def intervals_frame(self) -> pandas.DataFrame:
        """The time series of all trials: a row for each interval, times in seconds."""
        return _frame([{"trial": t.label, **row} for t in self.trials for row in t.intervals])

    def _json(self) -> str:
        return json.dumps(self.raw)

    def __getattr__(self, name: str) -> Any:
        of_times = name in _FIGURES
        if not of_times and (name in self._fields() or name not in Trial._fields()):
            return super().__getattr__(name)
        if len(self.trials) != 1:
            count = len(self.trials)
            what = f"a report of {count} trials has no {name!r}: see .trials and .conclusion"
            raise AttributeError(what, name=name, obj=self)
        return getattr(self.trials[0].response_time_s if of_times else self.trials[0], name)

    def __repr__(self) -> str:
        what = " ".join(filter(None, [self.command, self.spec.get("url"), self.started_at]))
        return f"<knee.Report {what}: {self.verdict.upper()}, {self.result.upper()}>"

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return _framed(self.render("html"))


class Comparison(Record):
    """B against A: which figures differ by more than chance. A notebook shows its page."""

    answer: str
    verdict: str
    has_invalid: bool
    warnings: tuple[str, ...]
    rows: tuple[Record, ...]

    def __init__(self, raw: Mapping[str, Any], *, text: str, html: str) -> None:
        super().__init__(raw)
        self._text = text
        #: The page.
        self.html = html

    def rows_frame(self) -> pandas.DataFrame:
        """A row for each figure and level, times in seconds."""
        return _frame(self.rows)

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return _framed(self.html)


def _framed(page: str) -> str:
    """A page in a frame of its own: its styles and scripts change nothing around it."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" title="Report of knee" '
        f'style="width: 100%; height: {_HEIGHT}; border: 0; resize: vertical"></iframe>'
    )


def _frame(rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, type] = {}) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError as e:
        raise ImportError("a DataFrame needs pandas: pip install 'knee[pandas]'") from e
    frame: pandas.DataFrame = pandas.DataFrame(rows)
    return frame.astype(kinds) if rows else frame
