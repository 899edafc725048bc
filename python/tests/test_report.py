"""Reports as objects agree with the JSON Schema and with the JSON."""

from __future__ import annotations

import json
import pickle
import re
import sys
import typing
from pathlib import Path
from typing import Any

import pytest

import knee
from knee._report import _name

SCHEMA = Path(__file__).parents[2] / "docs/src/reference/report.schema.json"


@pytest.fixture(scope="session")
def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(SCHEMA.read_text())
    return loaded


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (knee.Report, None),
        (knee.Trial, "TrialReport"),
        (knee.Times, "TimesReport"),
        (knee.Finding, "Finding"),
        (knee.Threshold, "ThresholdReport"),
    ],
)
def test_fields_are_those_of_the_schema(
    schema: dict[str, Any], record: type[knee.Record], name: str | None
) -> None:
    described = schema["$defs"][name] if name else schema
    keys = {_name(key): key for key in described["properties"]}
    for field, hint in typing.get_type_hints(record).items():
        assert field in keys, field
        may_be_missing = type(None) in typing.get_args(hint) or typing.get_origin(hint) is tuple
        assert may_be_missing or keys[field] in described["required"], field


def test_names_in_the_schema_are_unambiguous(schema: dict[str, Any]) -> None:
    methods = {name for record in (knee.Report, knee.Trial) for name in vars(record)}
    methods |= {"keys", "items", "values", "get", "raw"}
    for name, described in [*schema["$defs"].items(), ("report", schema)]:
        keys = list(described.get("properties", ()))
        assert len({_name(key) for key in keys}) == len(keys), name
        assert not methods & {_name(key) for key in keys}, name


@pytest.fixture
def known(report: knee.Report) -> knee.Report:
    """The same, where the generator made no figure uncertain: not so on each machine."""
    raw = json.loads(json.dumps(report.raw))
    raw["trials"][0]["response_time_ns"]["p50"] = raw["conclusion"]["p50_ns"] = 1_250_000
    return knee.Report(raw)


def test_times_are_in_seconds(known: knee.Report) -> None:
    raw = known.raw["trials"][0]
    trial = known.trials[0]
    assert trial.duration_s == raw["duration_ns"] / 1e9
    assert known.p50 == trial.response_time_s.p50 == known.conclusion.p50_s == 0.00125
    assert trial.response_time_s.count == raw["response_time_ns"]["count"]
    assert trial.response_time_s.spectrum[-1].percentile == 100
    longest = raw["response_time_ns"]["spectrum"][-1]["ns"]
    assert trial.response_time_s.spectrum[-1].s == longest / 1e9 >= 0.001
    assert trial.intervals[0]["end_s"] == raw["intervals"][0]["end_ns"] / 1e9


def test_report_has_the_figures_of_its_only_trial(report: knee.Report) -> None:
    assert report.outcomes == {"ok": report.trials[0].completed}
    assert report.throughput_per_s == report.trials[0].throughput_per_s
    assert dict(report)["seed"] == 7
    assert isinstance(report.findings, tuple) and report.thresholds == ()
    assert "p50" in dir(report.response_time_s)
    with pytest.raises(AttributeError, match="has no 'p98'; it has: count, mean"):
        report.response_time_s.p98
    copy = pickle.loads(pickle.dumps(report))
    assert copy == report and copy.trials[0].outcomes == report.outcomes


def test_report_of_several_trials_names_where_to_look(report: knee.Report) -> None:
    twice = knee.Report({**report.raw, "trials": report.raw["trials"] * 2})
    with pytest.raises(AttributeError, match="2 trials has no 'p99': see .trials"):
        twice.p99


def test_report_is_shown_in_every_form(report: knee.Report, tmp_path: Path) -> None:
    assert re.search(r"^(IN)?VALID", str(report), re.M), str(report)
    assert len(report.render("full")) > len(str(report))
    assert report.render("md").startswith("#")
    assert json.loads(report.render("json")) == report.raw
    page = tmp_path / "page.html"
    report.write(html=page, junit=tmp_path / "junit.xml")
    assert page.read_text() == report.render("html")
    assert "<testsuite" in (tmp_path / "junit.xml").read_text()
    with pytest.raises(knee.InputError, match="--pdf: unknown"):
        report.render("pdf")


def test_page_stands_in_a_frame_of_its_own(report: knee.Report) -> None:
    frame = report._repr_html_()
    found = re.fullmatch(r'<iframe srcdoc="([^"]*)"[^<>]*></iframe>', frame)
    assert found is not None
    assert "&lt;style" in found[1] and "<" not in found[1]


def test_checks_raise_what_is_wrong(report: knee.Report) -> None:
    good = knee.Report({**report.raw, "verdict": "valid", "result": "passed"})
    assert good.check() is good
    failed = knee.Report({**good.raw, "result": "failed", "failed_because": ["p99 is bad"]})
    with pytest.raises(knee.FailedError, match="p99 is bad") as e:
        failed.check()
    assert (e.value.exit_code, e.value.report) == (1, failed)
    with pytest.raises(knee.InvalidError) as invalid:
        knee.Report({**failed.raw, "verdict": "invalid"}).check()
    assert invalid.value.exit_code == 3


def test_frames_have_figures_and_intervals(known: knee.Report) -> None:
    pandas = pytest.importorskip("pandas")
    figures = known.percentiles_frame()
    assert isinstance(figures, pandas.DataFrame)
    p50 = figures[figures.figure == "p50"].iloc[0]
    assert p50.value_s == 0.00125
    intervals = known.intervals_frame()
    assert len(intervals) == len(known.trials[0].intervals)
    assert intervals.completed.sum() > 0
    ranged = json.loads(json.dumps(known.raw))
    times = ranged["trials"][0]["response_time_ns"]
    times["p50"] = None
    times["ranges"] = {"p50": {"at_least": 1_000_000, "at_most": 2_000_000, "because": "late"}}
    figures = knee.Report(ranged).percentiles_frame()
    p50 = figures[figures.figure == "p50"].iloc[0]
    assert (p50.at_least_s, p50.at_most_s) == (0.001, 0.002)


def test_missing_pandas_is_named(report: knee.Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'knee\[pandas\]'"):
        report.intervals_frame()
