"""Answers in the terminal, without a service."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from dither import ChoiceShare, Interval, LabelAnswer, Release

from app.cli.answers import show_release

_ENDS = Interval(level=0.95, lower=40.0, upper=44.0)

_FOUND = Release(
    id="a5d1",
    study="commute",
    statistic="mean",
    estimator="adpm",
    parameters={},
    estimate=42.0,
    standard_error=1.0,
    interval=_ENDS,
    population_interval=_ENDS,
    anytime=replace(_ENDS, lower=37.25, upper=46.75),
    refines=None,
    relation="replace_one",
    epsilon_max=Decimal("0.1"),
    people=400,
    people_left_out=0,
    left_out_because=None,
    new_contributions=False,
    raw={},
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)


@pytest.mark.parametrize("before", [None, "e0f8"])
def test_an_answer_shows_what_holds_at_all_steps_from_the_second_one_on(
    before: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    found = replace(_FOUND, refines=before)
    show_release(found)
    shown = capsys.readouterr().out
    assert ("at all steps" in shown) is (before is not None)
    assert ("37.25 to 46.75" in shown) is (before is not None)
    ends, always = (Interval(level=0.95, lower=low, upper=1 - low) for low in (0.3, 0.125))
    share: dict[str, Any] = {
        "share": 0.5,
        "interval": ends,
        "population_interval": ends,
        "simultaneous": ends,
    }
    choices = tuple(ChoiceShare(choice=choice, **share, anytime=always) for choice in "ab")
    show_release(replace(found, statistic="shares", estimate=None, choices=choices))
    shown = capsys.readouterr().out
    assert (shown.count("0.12 to 0.88") == 2) is (before is not None)


def test_shares_of_many_people_are_shown_no_more_certain_than_their_intervals(
    capsys: pytest.CaptureFixture[str],
) -> None:
    narrow = Interval(level=0.95, lower=0.2154012, upper=0.2154488)
    wide = Interval(level=0.95, lower=0.21301, upper=0.21749)
    one = ChoiceShare(
        choice="a",
        share=0.2154231,
        interval=narrow,
        population_interval=wide,
        simultaneous=wide,
        anytime=None,
    )
    show_release(replace(_FOUND, statistic="shares", estimate=None, choices=(one,)))
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("a\t"))
    assert row.split("\t")[1:3] == ["0.215423", "0.215401 to 0.215449"]
    assert row.split("\t")[3] == "0.2130 to 0.2175"


@pytest.mark.parametrize(
    ("lower", "upper", "shown"),
    [
        (1976.40412, 1976.42498, "1976.40412 to 1976.42498"),
        (53_000_123.4, 53_000_189.6, "53000123.4 to 53000189.6"),
        (37.2512345, 46.7512345, "37.2512 to 46.7512"),
        (4.000000001397, 6.000000007916, "4 to 6"),
        (-1976.425, -1976.404, "-1976.425 to -1976.404"),
    ],
)
def test_ends_of_a_narrow_interval_of_large_numbers_are_told_apart(
    lower: float, upper: float, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_release(replace(_FOUND, interval=Interval(level=0.95, lower=lower, upper=upper)))
    assert f"mean of these people\t{shown} (95% interval)" in capsys.readouterr().out


def test_the_estimate_of_a_label_is_no_more_exact_than_its_interval(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ends = Interval(level=0.95, lower=44.1642, upper=56.8682)
    label = LabelAnswer(
        where={"region": "north"}, people=9, estimate=50.5324, interval=ends, population_interval=ends
    )
    show_release(replace(_FOUND, by="region", groups=(label,)))
    assert "north\t9\t50.5\t44.1642 to 56.8682" in capsys.readouterr().out


def test_large_numbers_of_an_answer_have_no_exponent(capsys: pytest.CaptureFixture[str]) -> None:
    ends = Interval(level=0.95, lower=-478698.2, upper=1172080.4)
    show_release(replace(_FOUND, estimate=346692.0, standard_error=None, interval=ends, statistic="sum"))
    assert "-478698 to 1172080 (95% interval)" in capsys.readouterr().out
