"""Answers as tables: data frames, HTML, plots, CSV and Parquet, with every field that the service sent."""

import base64
import csv
import html
import io
import sys
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import dither
import pandas
import pytest
from dither import InvalidRequest, Plan, Release, Study
from dither._tables import rows_of
from dither._wire import build
from pyarrow import parquet

from tests.client.service import FakeService

MEAN: dict[str, Any] = {
    "id": "r1",
    "study": "commute",
    "statistic": "mean",
    "estimator": "optimal",
    "parameters": {"share": Decimal("0.5"), "variance": "estimated"},
    "estimate": Decimal("32.5"),
    "standard_error": Decimal("1.25"),
    "interval": {"level": Decimal("0.95"), "lower": 30, "upper": 35},
    "epsilon_max": Decimal("0.5"),
    "share": Decimal("0.5"),
    "share_before": 0,
    "refines": None,
    "epsilon_max_total": Decimal("0.75"),
    "people": 100,
    "created_at": "2030-01-31T12:00:00Z",
    "something_new": {"of": ["a", 1]},
}


def interval(lower: Any, upper: Any) -> dict[str, Any]:
    return {"level": Decimal("0.95"), "lower": lower, "upper": upper}


def part(lower: int, share: str, within: dict[str, Any]) -> dict[str, Any]:
    more = dict.fromkeys(("interval", "population_interval", "simultaneous"), within)
    return {"lower": lower, "upper": lower + 30, "share": Decimal(share), **more}


BINS = [part(0, "0.4", interval(Decimal("0.3"), 1)), part(30, "0.6", interval(0, Decimal("0.7")))]
CHOICES = [
    {
        "choice": choice,
        "share": Decimal(share),
        **dict.fromkeys(("interval", "population_interval", "simultaneous"), interval(0, 1)),
    }
    for choice, share in (("a<b>", "0.25"), ("c", "1"))
]
GROUPS = [
    {
        "where": {"region": label},
        "people": people,
        "people_left_out": 0,
        "estimate": estimate,
        "standard_error": 1,
        "interval": {"level": 0, "lower": estimate - 2, "upper": upper},
        "population_interval": None,
    }
    for label, people, estimate, upper in (("north", 75, 30, 31), ("south", 25, 40, 44))
]


def release(**changes: Any) -> Release:
    return build(Release, {**MEAN, **changes})


def histogram(**changes: Any) -> Release:
    document = {name: value for name, value in MEAN.items() if name not in ("estimate", "interval")}
    return build(Release, {**document, "statistic": "histogram", "bins": BINS, **changes})


def test_a_row_has_every_field_that_came() -> None:
    [row] = release()._rows()
    assert row["something_new.of"] == '["a", 1]'
    assert (row["parameters.share"], row["interval.lower"], row["refines"]) == (Decimal("0.5"), 30, None)
    names = {name.partition(".")[0] for name in row}
    assert names == set(MEAN)


def test_bins_choices_and_groups_are_rows() -> None:
    rows = histogram()._rows()
    assert [(row["bins.lower"], row["bins.share"], row["share"]) for row in rows] == [
        (0, Decimal("0.4"), Decimal("0.5")),
        (30, Decimal("0.6"), Decimal("0.5")),
    ]
    rows = release(groups=GROUPS)._rows()
    assert [(row.get("where.region"), row["estimate"], row["people"]) for row in rows] == [
        (None, Decimal("32.5"), 100),
        ("north", 30, 75),
        ("south", 40, 25),
    ]
    both = rows_of({"id": 1, "bins": BINS, "groups": [{"where": {"sex": "f"}, "bins": BINS[:1]}]})
    assert [(row.get("where.sex"), row["bins.lower"]) for row in both] == [(None, 0), (None, 30), ("f", 0)]


@pytest.mark.parametrize(
    ("whole", "of_a_group"),
    [
        ({"statistic": "regression", "of": "income", "on": "age"}, ("regression", "income", "age")),
        ({"statistic": "difference", "of": "sum", "between": {"region": ["a", "b"]}}, ("sum", None, None)),
        ({"statistic": "mean", "standardize": {"region": {"a": 1}}}, ("mean", None, None)),
    ],
)
def test_groups_say_what_they_are_of(whole: dict[str, Any], of_a_group: tuple[str | None, ...]) -> None:
    everyone, group = rows_of({**whole, "groups": [{"where": {"sex": "f"}}]})
    assert everyone["statistic"] == whole["statistic"]
    assert tuple(group.get(name) for name in ("statistic", "of", "on")) == of_a_group
    assert not any(name.startswith(("between", "standardize")) for name in group)


def test_a_data_frame_has_numbers_and_moments() -> None:
    frame = release().to_dataframe(full=True)
    assert frame.loc[0, "estimate"] == 32.5
    assert frame["estimate"].dtype == float
    assert frame.loc[0, "created_at"] == pandas.Timestamp("2030-01-31T12:00:00Z")
    assert frame.loc[0, "people"] == 100
    mixed = dither.to_dataframe(
        [release(), release(parameters={"variance": Decimal(3)}), histogram()], full=True
    )
    assert list(mixed["parameters.variance"][:2]) == ["estimated", "3"]
    assert len(mixed) == 4
    assert mixed["estimate"].isna().tolist() == [False, False, True, True]


def test_lists_and_plans_are_data_frames(client: Any, service: FakeService) -> None:
    release = client.release("commute")
    frame = dither.to_dataframe(client.releases("commute"), full=True)
    assert frame["id"].tolist() == [release.id]
    studies = dither.to_dataframe(client.studies())
    assert "commute" in studies["slug"].tolist()
    plan: Plan = client.plan("commute")
    assert plan.to_dataframe()["estimator"].tolist() == [row.estimator for row in plan.estimators]


class Cells(HTMLParser):
    """The cells of a table, and the tags around them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, _: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.cells.append(data)


def test_a_notebook_shows_a_table_and_no_markup_of_others() -> None:
    shown = Cells(release()._repr_html_())
    assert {"estimate", "32.5", "interval.lower", "30"} <= set(shown.cells)
    choices = build(Release, {**MEAN, "choices": CHOICES, "study": "<script>alert(1)</script>"})
    shown = Cells(choices._repr_html_())
    assert shown.tags == {*("p", "img", "details", "summary"), *("table", "thead", "tbody", "tr", "th", "td")}
    assert {"a<b>", "<script>alert(1)</script>"} <= set(shown.cells)
    study: Study = build(
        Study,
        {
            "slug": "s",
            "lower": 0,
            "upper": 1,
            "relation": "replace_one",
            "trust": ["central"],
            "epsilon": {"min": 1, "max": 2},
        },
    )
    assert "epsilon.min" in Cells(study._repr_html_()).cells


def test_an_answer_in_a_notebook_is_its_sentence_and_its_plot() -> None:
    from PIL import Image

    for shown in (release(), histogram(), release(groups=GROUPS)):
        said, _, rest = shown._repr_html_().removeprefix("<p>").partition("</p>")
        assert html.unescape(said) == str(shown)
        source, _, folded = rest.partition('">')
        kind, _, content = source.partition('src="')[2].partition(",")
        assert kind == "data:image/png;base64", "nothing is loaded from elsewhere"
        with Image.open(io.BytesIO(base64.b64decode(content))) as image:
            assert len(image.getcolors(1 << 20) or ()) > 10, "it is not empty"
        assert folded.startswith("<details><summary>All fields</summary><table>")
    # What has nothing to draw has no plot, and a plan is a sentence above its table.
    assert "<img" not in build(Release, {**MEAN, "statistic": "kmeans", "estimate": None})._repr_html_()


def test_a_notebook_without_matplotlib_has_the_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    shown = release()._repr_html_()
    assert shown.startswith(f"<p>{release()}</p><details>")


def test_a_data_frame_has_six_columns_unless_all_are_asked_for() -> None:
    groups = [*GROUPS, {"where": {"region": "east"}, "people": 0, "estimate": None, "interval": None}]
    for shown, rows in (
        (release(), [("mean", "all", 32.5, 30, 35)]),
        (histogram(), [("histogram", "0 to 30", 0.4, 0.3, 1), ("histogram", "30 to 60", 0.6, 0, 0.7)]),
        (
            release(groups=groups),
            [
                ("mean", "all", 32.5, 30, 35),
                ("mean", "north", 30, 28, 31),
                ("mean", "south", 40, 38, 44),
                ("mean", "east", None, None, None),
            ],
        ),
    ):
        frame = shown.to_dataframe()
        assert list(frame) == ["study", "statistic", "of", "estimate", "lower", "upper"]
        assert set(frame["study"]) == {"commute"}
        found = frame.drop(columns="study").astype(object).where(frame.drop(columns="study").notna(), None)
        assert [tuple(row) for row in found.to_numpy()] == rows
        assert set(shown.to_dataframe(full=True)) > {"study", "statistic", "created_at", "epsilon_max"}


def bars(ax: Any) -> dict[str, float]:
    """The estimates that are drawn: one alone as a dot."""
    labels = [label.get_text() for label in ax.get_yticklabels()]
    widths = [patch.get_width() for patch in ax.patches]
    alone = [line.get_xdata()[0] for line in ax.lines if line.get_label() == "estimate"]
    assert bool(widths) is not bool(alone)
    return dict(zip(labels, widths or alone, strict=True))


def drawn_ends(ax: Any, style: str) -> list[tuple[float, ...]]:
    """The ends of the intervals that are drawn in a style."""
    lines = [line for one in ax.containers if hasattr(one, "has_xerr") for line in one.lines[2]]
    return sorted(
        tuple(sorted(segment[:, 0]))
        for line in lines
        if (line.get_linestyle()[0][1] is None) is (style == "solid")
        for segment in line.get_segments()
    )


@pytest.fixture
def ax() -> Any:
    from matplotlib.figure import Figure

    return Figure().subplots()


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (release(), {"all": 32.5}),
        (histogram(), {"0 to 30": 0.4, "30 to 60": 0.6}),
        (release(groups=GROUPS), {"all": 32.5, "north": 30, "south": 40}),
        (build(Release, {**MEAN, "choices": CHOICES}), {"a<b>": 0.25, "c": 1}),
        (
            release(statistic="difference", between={"region": ["north", "south"]}, groups=GROUPS),
            {"north less south": 32.5},
        ),
        (
            release(
                standardize={"region": {"north": Decimal("0.5"), "south": Decimal("0.5")}}, groups=GROUPS
            ),
            {"standardized": 32.5, "north": 30, "south": 40},
        ),
    ],
)
def test_a_plot_has_a_bar_for_each_estimate_and_its_interval(
    shown: Release, expected: dict[str, float], ax: Any
) -> None:
    assert shown.plot(ax) is ax
    assert bars(ax) == expected
    ends = drawn_ends(ax, "solid")
    wanted: dict[str, tuple[float, float]] = dict.fromkeys(
        ("all", "north less south", "standardized"), (30, 35)
    )
    wanted |= {"north": (28, 31), "south": (38, 44)}
    wanted |= {"0 to 30": (0.3, 1), "30 to 60": (0, 0.7), "a<b>": (0, 1), "c": (0, 1)}
    pairs = sorted(wanted[name] for name in expected if name in wanted)
    assert ends == [pytest.approx(pair) for pair in pairs]
    unit = "share of the people" if shown.bins or shown.choices else f"{shown.statistic} (unit of the study)"
    assert (ax.get_xlabel(), ax.get_title()) == (unit, "commute")
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"estimate", "95 % interval"} <= set(legend)
    assert len(legend) == len(set(legend))


def test_intervals_that_hold_together_are_dashed_and_what_is_drawn_to_the_whole_is_a_dot(ax: Any) -> None:
    wide = {"level": Decimal("0.95"), "lower": 27, "upper": 45}
    more = {"simultaneous": wide, "drawn_to_whole": Decimal("31.5")}
    shown = release(groups=[group | more for group in GROUPS])
    shown.plot(ax)
    assert drawn_ends(ax, "dashed") == [(27, 45)] * 2
    assert len(drawn_ends(ax, "solid")) == 3
    assert [list(line.get_xdata()) for line in ax.lines if line.get_marker() == "o"] == [[31.5, 31.5]]
    assert list(shown.to_dataframe(full=True)["drawn_to_whole"].dropna()) == [31.5, 31.5]
    assert list(shown.to_dataframe(full=True)["simultaneous.upper"].dropna()) == [45, 45]
    assert "drawn_to_whole" in shown._repr_html_()


@pytest.mark.parametrize("before", [None, "00000000-0000-4000-8000-000000000001"])
def test_what_holds_at_all_steps_is_dotted_and_said_from_the_second_one_on(
    before: str | None, ax: Any
) -> None:
    always = {"anytime": {"level": Decimal("0.95"), "lower": 20, "upper": 60}}
    one = release(refines=before, **always, groups=[group | always for group in GROUPS])
    one.plot(ax)
    assert drawn_ends(ax, "dotted") == ([(20, 60)] * 3 if before else [])
    assert str(one).count("at all steps 20 to 60") == (3 if before else 0)
    of_bins = [one | {"anytime": {"level": Decimal("0.95"), "lower": 0, "upper": 1}} for one in BINS]
    assert str(histogram(refines=before, bins=of_bins)).count("at all steps 0 to 1") == (2 if before else 0)


def test_a_difference_has_a_line_at_zero(ax: Any) -> None:
    between = {"region": ["north", "south"]}
    found = release(statistic="difference", of="mean", between=between, groups=GROUPS)
    found.plot(ax)
    assert [list(line.get_xdata()) for line in ax.lines if line.get_marker() in ("None", "")][-1] == [0, 0]
    rows = found.to_dataframe(full=True)
    assert list(rows["statistic"]) == ["difference", "mean", "mean"]
    assert list(rows["between.region"].notna()) == [True, False, False]


def test_a_plan_is_drawn_without_an_axes_of_the_caller(client: Any, service: FakeService) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    plan: Plan = client.plan("commute")
    ax = plan.plot()
    assert bars(ax) == {row.estimator: row.predicted_error for row in plan.estimators}
    pyplot.close("all")


def test_csv_and_parquet_hold_the_same(tmp_path: Path) -> None:
    items = [release(), histogram()]
    for name in ("r.csv", "r.parquet", "r.csv"):
        assert dither.save_table(items, tmp_path / name) == 3
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = parquet.read_table(tmp_path / "r.parquet").to_pylist()
    assert [row["estimate"] for row in rows] == ["32.5", "", ""]
    assert [row["estimate"] for row in table] == [32.5, None, None]
    assert list(table[0]) == list(rows[0])
    assert table[0]["created_at"].isoformat() == "2030-01-31T12:00:00+00:00"
    assert {path.name for path in tmp_path.iterdir()} == {"r.csv", "r.parquet"}


def test_another_ending_and_a_missing_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"\.csv or \.parquet"):
        dither.save_table([release()], tmp_path / "r.txt")
    with pytest.raises(FileNotFoundError) as nowhere:
        dither.save_table([release()], tmp_path / "none" / "r.csv")
    assert str(tmp_path / "none") in str(nowhere.value)
    assert "partial" not in str(nowhere.value)
    assert list(tmp_path.iterdir()) == []


def test_no_answers_are_an_empty_table(tmp_path: Path) -> None:
    assert dither.save_table([], tmp_path / "r.csv") == 0
    assert dither.to_dataframe([]).empty


@pytest.mark.parametrize(
    ("module", "extra", "use"),
    [
        ("pandas", "pandas", lambda _: release().to_dataframe()),
        ("matplotlib", "matplotlib", lambda _: release().plot()),
        ("pyarrow", "parquet", lambda path: dither.save_table([release()], path / "r.parquet")),
    ],
)
def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: str, extra: str, use: Any
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidRequest, match=rf"pip install 'dither\[{extra}\]'"):
        use(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_sdk_loads_none_of_them_by_itself() -> None:
    import subprocess

    program = "import dither, sys; print({'pandas', 'matplotlib', 'pyarrow', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_shares_by_labels_are_rows_of_the_whole_and_then_of_each_label():
    groups = [{"where": {"region": label}, "people": 5, "choices": CHOICES} for label in ("north", "south")]
    empty = {"where": {"region": "east"}, "people": 0, "choices": None}
    document = {**MEAN, "statistic": "shares", "by": "region", "choices": CHOICES, "groups": [*groups, empty]}
    found = build(Release, document)
    assert found.groups is not None
    assert found.groups[1].choices == found.choices
    assert found.groups[2].choices is None
    rows = found.to_dataframe(full=True)
    assert rows["where.region"].fillna("all").tolist() == ["all"] * 2 + ["north"] * 2 + ["south"] * 2 + [
        "east"
    ]
    assert rows["choices.choice"].tolist()[:6] == ["a<b>", "c"] * 3


def test_what_admins_list_becomes_a_table_and_what_is_none_is_refused(
    client: Any, service: FakeService, tmp_path: Path
) -> None:
    client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")
    client.create_token("survey app", role="contribute")
    assert dither.to_dataframe(client.budgets())["epsilon.remaining"].tolist() == [9]
    assert dither.to_dataframe(client.tokens())["name"].tolist() == ["survey app"]
    client.create_session("commute", protocol="maximum", epsilon=1, participants=2)
    assert dither.to_dataframe(client.sessions("commute"))["protocol"].tolist()[-1] == "maximum"
    others: list[tuple[Any, str]] = [([1, 2], "int"), (5, "int"), (release(), "Release")]
    for items, kind in others:
        with pytest.raises(InvalidRequest, match=f"items must be .*, not {kind}"):
            dither.to_dataframe(items)
    with pytest.raises(InvalidRequest, match=r"items must be .*, not str"):
        dither.save_table("ab", tmp_path / "r.csv")  # type: ignore[arg-type]


def test_a_spread_that_noise_hides_is_at_most_its_upper_end() -> None:
    """Also of an answer from before, whose estimate is 0; numbers in tables stay numbers."""
    hidden = {"estimate": 0, "standard_error": 9, "interval": interval(0, 3497)}
    hidden |= {"population_interval": interval(0, 3600)}
    seen = {"estimate": 20, "standard_error": 2, "interval": interval(15, 25)}
    seen |= {"population_interval": interval(14, 26)}
    shared = MEAN | {"population_interval": interval(29, 36), "people_left_out": 0, "left_out_because": None}
    shared |= {"relation": None, "new_contributions": None, "epsilon_max_total": None}
    found = build(Release, shared | {"variance": seen, "sd": hidden})
    assert found.sd is not None
    assert found.variance is not None
    assert (found.sd.in_words, found.variance.in_words) == ("at most 3497", "20 (15 to 25)")
    coordinate = hidden | {"coordinate": 0, "sd": hidden}
    label = {"where": {"sex": "f"}} | hidden
    cases: tuple[tuple[dict[str, Any], int], ...] = (
        ({"statistic": "mean", "sd": hidden, "variance": seen} | seen, 1),
        ({"statistic": "sd"} | hidden, 1),
        ({"statistic": "variance", "groups": [label, label]} | seen, 2),
        ({"statistic": "sd", "coordinates": [coordinate]}, 2),
        ({"statistic": "mean"} | hidden, 0),
    )
    for document, times in cases:
        shown = build(Release, shared | document)
        assert shown._repr_html_().partition("<table>")[2].count("at most 3497") == times, document
    assert rows_of({"statistic": "sd"} | hidden)[0]["estimate"] == 0


def test_an_answer_is_printed_as_a_sentence() -> None:
    assert str(release()) == "mean of commute: 32.5 (30 to 35)"
    labels = build(Release, MEAN | {"groups": GROUPS})
    assert str(labels).startswith("mean of commute: 32.5 (30 to 35); ")
    assert len(str(labels).split("; ")) == 1 + len(GROUPS)
    hidden = {"statistic": "sd", "estimate": 0, "interval": interval(0, 3497)}
    assert str(build(Release, MEAN | hidden)) == "sd of commute: at most 3497"
    # What has no estimates is shown as it is.
    clusters = build(Release, {**MEAN, "statistic": "kmeans", "estimate": None})
    assert str(clusters) == repr(clusters)
