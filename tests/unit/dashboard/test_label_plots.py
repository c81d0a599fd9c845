"""Plots of answers for labels and coordinates draw each of them, with its interval."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4
from xml.etree import ElementTree

import pytest

from app.dashboard import label_plots
from app.web.documents.shape import CoordinateOut, DescriptionOut

HEAD = {
    "id": uuid4(),
    "study": "rent",
    "statistic": "describe",
    "estimator": "exponential",
    "estimator_version": 1,
    "parameters": {},
    "predicted_error": 1.0,
    "relation": "replace_one",
    "epsilon_max": 1.0,
    "created_at": datetime(2026, 11, 1, tzinfo=UTC),
}


def interval(lower: float, upper: float) -> dict[str, Any]:
    return {"level": 0.95, "lower": lower, "upper": upper, "coverage": "exact"}


def statistic(estimate: float) -> dict[str, Any]:
    ends = interval(estimate - 5, estimate + 5)
    return {"estimate": estimate, "standard_error": 2, "interval": ends, "population_interval": ends}


def description(quartiles: Sequence[float], mean: float | None) -> dict[str, Any]:
    return {
        "count": {"estimate": 100, "interval": interval(90, 110)},
        "mean": None if mean is None else statistic(mean),
        "sd": None,
        "quartiles": [
            {"q": q, "estimate": one, "interval": interval(one - 3, one + 3)}
            for q, one in zip((0.25, 0.5, 0.75), quartiles, strict=True)
        ],
    }


def drawings(plot: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(f"<figure>{plot}</figure>"))


def titles(drawing: ElementTree.Element, kind: str) -> list[str]:
    found = [one for one in drawing.iter("g") if one.attrib.get("class") == kind]
    return [one[0].text or "" for one in found]


def test_a_description_draws_a_box_and_four_dots_for_all_people_and_each_label() -> None:
    nobody = {"count": None, "mean": None, "sd": None, "quartiles": None}
    labels = [
        ("north", description((10, 30, 50), 31)),
        ("south", description((40, 55, 80), None)),
        ("west", nobody),
    ]
    release = DescriptionOut.model_validate(
        HEAD
        | description((20, 45, 60), 40)
        | {"by": "town", "groups": [{"where": {"town": name}} | one for name, one in labels]}
    )
    wide, narrow = drawings(label_plots.described(release))
    for drawing in (wide, narrow):
        boxes = [one for one in drawing.iter("rect") if one.attrib["class"] == "bar box"]
        assert [one[0].text for one in boxes] == [
            f"{name}: half of the people" for name in ("all people", "north", "south")
        ]
        heights = [float(one.attrib["height"]) for one in boxes]
        assert heights == pytest.approx([heights[0]] * 3, abs=0.2)
        said = titles(drawing, "estimate")
        assert len(said) == 4 + 4 + 3
        assert said[4] == "north, first quartile: 10.0, 95 %: 7.0 to 13.0"
        assert said[-1] == "south, third quartile: 80.0, 95 %: 77.0 to 83.0"


def test_coordinates_are_drawn_side_by_side_and_none_of_no_people() -> None:
    found = [
        CoordinateOut.model_validate({"coordinate": place, **statistic(mean), "simultaneous": together})
        for place, (mean, together) in enumerate(((20, interval(10, 30)), (70, None)))
    ]
    for drawing in drawings(label_plots.coordinates(found, y="mean", steps=False)):
        assert titles(drawing, "estimate") == ["0: 20.0, 95 %: 15.0 to 25.0", "1: 70.0, 95 %: 65.0 to 75.0"]
        assert len([one for one in drawing.iter("g") if one.attrib["class"] == "reach together"]) == 1
    assert label_plots.coordinates([], y="mean", steps=False) == ""
