"""Scales put values where they belong, and plots draw what they are given."""

import math
import re
from datetime import UTC, date, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dashboard import plots
from app.dashboard.plots import Estimate, PlotBin, Series
from app.dashboard.scales import Linear, Logarithmic, Time, nice_ceiling, nice_step


@given(st.floats(-1e4, 1e4), st.floats(0.1, 1e7), st.floats(0, 1))
def test_a_linear_scale_keeps_proportions(low: float, span: float, part: float):
    scale = Linear(low, low + span, 40, 500)
    assert scale(low + part * span) == pytest.approx(40 + part * 460, abs=0.01)


@given(st.floats(1e-6, 1e6), st.floats(1.5, 1e6))
def test_a_logarithmic_scale_keeps_ratios(low: float, ratio: float):
    scale = Logarithmic(low, low * ratio, 0, 100)
    assert scale(low) == pytest.approx(0, abs=1e-6)
    assert scale(low * math.sqrt(ratio)) == pytest.approx(50, abs=1e-6)
    assert scale(low * ratio) == pytest.approx(100, abs=1e-6)


@given(st.floats(-1e4, 1e4), st.floats(0.1, 1e7), st.integers(3, 12))
def test_ticks_are_round_within_the_axis_and_not_too_many(low: float, span: float, most: int):
    scale = Linear(low, low + span, 0, 100)
    ticks = scale.ticks(most)
    assert 2 <= len(ticks) <= most + 1
    step = ticks[1][0] - ticks[0][0]
    assert nice_step(step * (1 - 1e-6)) == pytest.approx(step, rel=1e-3)
    for value, _ in ticks:
        assert low - 1e-6 * span <= value <= low + span * (1 + 1e-6)
        assert value / step == pytest.approx(round(value / step), abs=1e-4)


def test_an_axis_of_few_ticks_has_more_than_one():
    assert [text for _, text in Linear(1000, 9000, 0, 100).ticks(3)] == ["2,000", "4,000", "6,000", "8,000"]


@given(st.floats(1e-9, 1e12))
def test_an_axis_ends_above_its_largest_value(value: float):
    assert value <= nice_ceiling(value) * (1 + 1e-9)
    assert nice_ceiling(value) <= 2.5 * value


@pytest.mark.parametrize(
    ("span", "label"), [(10, "00:00:05"), (3600, "00:15"), (5 * 86_400, "2 Jan"), (3000 * 86_400, "1971")]
)
def test_moments_are_labeled_by_how_far_they_are_apart(span: float, label: str):
    ticks = Time(0, span, 0, 100).ticks(8)
    assert 2 <= len(ticks) <= 9
    assert label in {text for _, text in ticks}


def drawings(plot: str) -> list[ElementTree.Element]:
    """The drawings of a plot, for a wide and for a narrow screen."""
    return list(ElementTree.fromstring(f"<figure>{plot}</figure>"))


def bars(drawing: ElementTree.Element, tone: str) -> list[float]:
    """Heights of the bars of a tone."""
    return [
        float(one.attrib["height"]) for one in drawing.iter("rect") if one.attrib["class"] == f"bar {tone}"
    ]


BINS = [PlotBin(0, 1), PlotBin(1, 2), PlotBin(2, 3)]
TWO = [Series("reserved", "a", [4, 8, 0]), Series("spent", "b", [8, 2, 2])]


def test_the_bars_of_a_histogram_are_as_high_as_their_values():
    for drawing in drawings(plots.histogram("t", BINS, TWO, x="epsilon", y="people")):
        first, second = bars(drawing, "a")
        assert second == pytest.approx(2 * first, abs=0.2)
        assert bars(drawing, "b")[0] == pytest.approx(second, abs=0.2)


def test_stacked_bars_do_not_overlap():
    for drawing in drawings(
        plots.histogram(
            "t",
            [PlotBin(1, 2), PlotBin(2, 5)],
            [Series("central", "a", [3, 1]), Series("local", "b", [1, 1])],
            x="epsilon",
            y="people",
            logarithmic=True,
            on_top=True,
        )
    ):
        lower, upper = (
            next(one for one in drawing.iter("rect") if one.attrib["class"] == f"bar {tone}") for tone in "ab"
        )
        bottom = float(upper.attrib["y"]) + float(upper.attrib["height"])
        assert bottom == pytest.approx(float(lower.attrib["y"]), abs=0.2)


def test_a_day_without_anything_has_no_bar_and_every_axis_names_its_unit():
    days = [(date(2030, 1, 1) + timedelta(days=number), number) for number in range(4)]
    for drawing in drawings(plots.daily("t", days, y="contributions")):
        assert len(bars(drawing, "a")) == 3
        texts = {one.text for one in drawing.iter("text")}
        assert {"contributions", "day (UTC)"} <= texts


def test_an_estimate_lies_within_its_interval():
    points = [
        Estimate(at=datetime(2030, 1, number, tzinfo=UTC), value=5.0, lower=4.0, upper=7.0, title="5")
        for number in (1, 2)
    ]
    for drawing in drawings(plots.estimates("t", points, y="mean")):
        for group in drawing.iter("g"):
            line = next(group.iter("line"))
            top, bottom = sorted((float(line.attrib["y1"]), float(line.attrib["y2"])))
            center = float(next(group.iter("circle")).attrib["cy"])
            assert top < center < bottom
            assert (bottom - center) == pytest.approx((center - top) / 2, abs=0.2)


def test_the_saturation_curve_bends_where_privacy_is_free():
    bent = plots.saturation("t", largest=5, point=1.0)
    straight = plots.saturation("t", largest=5, point=None)
    assert "privacy for free" in bent
    assert "privacy for free" not in straight
    for drawing in drawings(bent):
        charged = next(one for one in drawing.iter("polyline") if one.attrib["class"] == "charged")
        points = [tuple(map(float, pair.split(","))) for pair in charged.attrib["points"].split()]
        assert points[1][1] == points[2][1]


def test_what_is_counted_has_whole_ticks():
    for drawing in drawings(plots.answered("t", [3, 1, 0])):
        texts = [one.text for one in drawing.iter("text") if one.attrib["class"] == "tick"]
        assert all(text is not None and text.isdigit() for text in texts)
        first, second = bars(drawing, "c")
        assert first == pytest.approx(3 * second, abs=0.4)


def test_a_search_narrows_to_what_is_left():
    for drawing in drawings(plots.narrowing("t", [(0, 8), (0, 4), (2, 4)], rounds=5, low=0, high=8, y="v")):
        whole, half, quarter = bars(drawing, "a")
        assert whole == pytest.approx(2 * half, abs=0.3)
        assert half == pytest.approx(2 * quarter, abs=0.3)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_centers_wander_from_where_they_began_to_where_they_are(dimension: int):
    """Of one coordinate over the rounds, of more the first two over each other."""
    tail = [9.0] * (dimension - 2)
    centers = [
        [[0.0, 0.0, *tail][:dimension], [10.0, 10.0, *tail][:dimension]],
        [[2.0, 4.0, *tail][:dimension], [10.0, 10.0, *tail][:dimension]],
    ]
    for drawing in drawings(plots.wandering("t", centers, rounds=4, low=0, high=10)):
        moved, stayed = (
            [tuple(map(float, point.split(","))) for point in one.attrib["points"].split()]
            for one in drawing.iter("polyline")
        )
        width, height = stayed[0][0] - moved[0][0], moved[0][1] - stayed[0][1]
        rise = (4 if dimension > 1 else 2) / 10
        assert moved[0][1] - moved[1][1] == pytest.approx(rise * height, abs=0.2)
        if dimension > 1:
            assert moved[1][0] - moved[0][0] == pytest.approx(0.2 * width, abs=0.2)
        else:
            assert moved[0][0] == stayed[0][0] < moved[1][0] == stayed[1][0]
        circles = [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in drawing.iter("circle")]
        assert circles == [moved[-1], stayed[-1]]
        tracks = [one for one in drawing.iter("g") if one.attrib.get("class", "").startswith("track")]
        assert [one.findtext("text") for one in tracks] == ["1", "2"]


def test_nothing_is_drawn_of_nothing():
    assert plots.histogram("t", [], [], x="", y="") == ""
    assert plots.daily("t", [], y="") == ""
    assert plots.estimates("t", [], y="") == ""
    assert plots.narrowing("t", [], rounds=3, low=0, high=1, y="") == ""
    assert plots.wandering("t", [], rounds=3, low=0, high=1) == ""


def test_names_cannot_break_out_of_a_drawing():
    plot = plots.histogram("<b>", BINS, [Series("<script>", "a", [1, 1, 1])], x="<x>", y='"')
    assert "<script>" not in plot
    assert not re.search(r"<x>|<b>", plot)
    assert len(drawings(plot)) == 2


def test_no_drawing_carries_a_style():
    plot = plots.histogram("t", BINS, TWO, x="epsilon", y="people")
    assert "style=" not in plot


def test_one_terrible_answer_does_not_set_the_scale():
    """Three answers about 50 +- 1 and one that says 0 to 120: those three keep most of the height."""

    start = datetime(2030, 1, 1, tzinfo=UTC)

    def answers(*, terrible: bool) -> list[Estimate]:
        times = [start + timedelta(hours=hour) for hour in range(4)]
        made = [Estimate(at=at, value=50, lower=49, upper=51, title="good") for at in times[:3]]
        far = Estimate(at=times[3], value=110, lower=0, upper=120, title="terrible")
        return [*made, far] if terrible else made

    def heights(points: list[Estimate]) -> list[float]:
        drawn = str(plots.estimates("Answers", points, y="mean"))
        line = r'<title>good</title><line x1="[\d.]+" x2="[\d.]+" y1="([\d.]+)" y2="([\d.]+)"'
        return [abs(float(low) - float(high)) for low, high in re.findall(line, drawn)]

    assert heights(answers(terrible=True)) == heights(answers(terrible=False))
    assert min(heights(answers(terrible=True))) > 50
    assert "terrible" in str(plots.estimates("Answers", answers(terrible=True), y="mean"))
