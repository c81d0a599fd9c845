"""What is read off answers by labels over HTTP: differences, known shares, intervals that hold at once."""

from typing import Any

import pytest

from tests.api.service import Service, assert_problem

REGIONS = ["north", "south", "east", "empty"]
VALUES = {"north": 20, "south": 80, "east": 60}
ALL_NORTH = "region:north=1,south=0,east=0,empty=0"


@pytest.fixture
async def survey(service: Service) -> str:
    """90 people in three of four regions; those in the north ask for little privacy."""
    slug = await service.study(attributes={"region": REGIONS}, tilt=0)
    records = [
        {
            "subject": f"{region}{number}",
            "value": value,
            "epsilon": 10 if region == "north" else 5,
            "trust": "central",
            "attributes": {"region": region},
        }
        for region, value in VALUES.items()
        for number in range(30)
    ]
    path = f"/v1/studies/{slug}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).status_code == 200
    return slug


async def ask(service: Service, survey: str, question: str) -> dict[str, Any]:
    answer = await service.call("GET", f"/v1/studies/{survey}/statistics/{question}", "analyse")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_a_difference_costs_the_answer_by_labels_and_nothing_after_it(service: Service, survey: str):
    path = f"/v1/studies/{survey}/plan?statistic=difference&between=region:south,north"
    plan = (await service.call("GET", path, "analyse")).json()
    first = await ask(service, survey, "difference?of=mean&between=region:south,north")
    assert plan["estimators"][0]["epsilon_max"] == first["epsilon_max"] > 0
    assert (first["statistic"], first["of"], first["by"]) == ("difference", "mean", "region")
    assert first["between"] == {"region": ["south", "north"]}
    groups = {group["where"]["region"]: group for group in first["groups"]}
    north, south = (groups[name]["error"]["center"] for name in ("north", "south"))
    assert first["estimate"] == pytest.approx(min(100, max(-100, south - north)))
    # The other way round, by its parts, and again: all off the same release.
    other = await ask(service, survey, "difference?between=region:north,south")
    assert other["estimate"] == -first["estimate"]
    assert other["interval"]["upper"] == pytest.approx(-first["interval"]["lower"])
    means = await ask(service, survey, "mean?by=region")
    assert {first["id"], other["id"]} == {means["id"]}
    assert means["groups"] == first["groups"]
    assert "standardize" not in first
    assert "between" not in means
    widths = [groups[name]["interval"]["upper"] - groups[name]["interval"]["lower"] for name in VALUES]
    width = first["interval"]["upper"] - first["interval"]["lower"]
    assert max(widths[:2]) < width <= sum(widths[:2]) * 1.2, "convolved, not added"
    more = {"statistic": "difference", "of": "mean", "between": "region:north,south", "share": 0.5}
    sharper = await service.call("POST", f"/v1/studies/{survey}/releases", "analyse", json=more)
    assert (sharper.status_code, sharper.json()["refines"]) == (201, first["id"])
    assert abs(sharper.json()["estimate"] + 60) < 40, "but with a probability below 1e-8"


async def test_known_shares_mend_a_mean_that_is_drawn_to_those_who_ask_for_little(
    service: Service, survey: str
):
    question = "mean?estimator=uniform&share=1&standardize=region:north=.25,south=.5,east=.25,empty=0"
    found = await ask(service, survey, question)
    groups = {group["where"]["region"]: group for group in found["groups"]}
    weights = {"north": 0.25, "south": 0.5, "east": 0.25, "empty": 0.0}
    assert found["standardize"] == {"region": weights}
    expected = sum(weights[name] * groups[name]["estimate"] for name in VALUES)
    assert found["estimate"] == pytest.approx(expected)
    assert {name: group["weight"] for name, group in groups.items()} == weights
    assert abs(found["estimate"] - 60) < 20, "but with a probability below 1e-8"
    assert found["interval"]["coverage"] == "exact", "all in a region weigh alike"
    plain = await ask(service, survey, "mean?by=region&estimator=uniform")
    assert plain["id"] == found["id"]
    assert plain["estimate"] != found["estimate"]
    # A label that is needed and has no answer.
    needed = f"/v1/studies/{survey}/statistics/mean?estimator=uniform"
    needed += "&standardize=region:north=.5,south=.2,east=.2,empty=.1"
    refused = await service.call("GET", needed, "analyse")
    assert "region:empty" in assert_problem(refused, "estimator_not_applicable", 409)["detail"]


@pytest.mark.parametrize(
    "question",
    [
        "difference?of=mean&between=region:north,empty",
        "mean?standardize=region:north=.5,south=.2,east=.2,empty=.1",
    ],
)
async def test_what_needs_a_label_without_people_is_refused_before_a_release_is_made(
    service: Service, survey: str, question: str
):
    refused = await service.call("GET", f"/v1/studies/{survey}/statistics/{question}", "analyse")
    assert "region:empty" in assert_problem(refused, "estimator_not_applicable", 409)["detail"]
    made = await service.call("GET", f"/v1/studies/{survey}/releases", "analyse")
    assert made.json()["items"] == []


async def test_simultaneous_intervals_stand_beside_plain_ones(service: Service, survey: str):
    plain = await ask(service, survey, "mean?by=region&share=1")
    assert all("simultaneous" not in group for group in plain["groups"])
    found = await ask(service, survey, "mean?by=region&simultaneous=true")
    total = await ask(service, survey, "sum?by=region&simultaneous=true")
    assert found["id"] == plain["id"] == total["id"]
    for group, summed in zip(found["groups"][:3], total["groups"], strict=False):
        assert group["simultaneous"]["lower"] <= group["interval"]["lower"]
        assert group["simultaneous"]["upper"] >= group["interval"]["upper"]
        assert group["simultaneous"] != group["interval"]
        assert summed["simultaneous"]["upper"] == pytest.approx(30 * group["simultaneous"]["upper"])
        assert "drawn_to_whole" not in summed
    assert found["groups"][3]["simultaneous"] is None
    assert found["groups"][3]["drawn_to_whole"] is None
    drawn = [group["drawn_to_whole"] for group in found["groups"][:3]]
    for group, number in zip(found["groups"], drawn, strict=False):
        ends = sorted((group["estimate"], found["estimate"]))
        assert ends[0] - 1e-9 <= number <= ends[1] + 1e-9


@pytest.mark.parametrize(
    ("question", "field", "reason"),
    [
        ("statistic=difference", "between", "such as region:north,south"),
        ("statistic=difference&between=sex:f,m", "between", "an attribute of the study: region"),
        ("statistic=difference&between=region:north", "between", "two labels of region"),
        ("statistic=difference&between=region:north,north", "between", "two labels of region"),
        ("statistic=difference&between=region:north,west", "between", "two labels of region"),
        ("statistic=difference&between=region:north,south&of=sum", "of", "must be mean"),
        ("statistic=difference&between=region:north,south&by=age", "by", "must be region"),
        ("between=region:north,south", "between", "applies to a difference"),
        ("statistic=median&between=region:north,south", "between", "applies to a difference"),
        ("standardize=region:north=.5", "standardize", "every label of region"),
        ("standardize=region:north=.5,south=.5,east=.5,empty=0", "standardize", "sum to 1"),
        ("standardize=region:north=-1,south=1,east=1,empty=0", "standardize", "between 0 and 1"),
        ("standardize=region:north=x,south=1,east=0,empty=0", "standardize", "between 0 and 1"),
        ("standardize=region:north=1e-99,south=1,east=0,empty=0", "standardize", "between 0 and 1"),
        (f"standardize={ALL_NORTH};{ALL_NORTH}", "standardize", "names region twice"),
        (f"standardize={ALL_NORTH};sex:f=1", "standardize", "an attribute of the study: region"),
        ("standardize=region", "standardize", "such as region:north=.4,south=.6"),
        ("statistic=sd&standardize=region:north=1,south=0,east=0,empty=0", "standardize", "a mean"),
        ("statistic=median&standardize=region:north=1", "standardize", "a mean"),
        ("simultaneous=true", "simultaneous", "give by"),
        ("simultaneous=yes&by=region", "simultaneous", "true or false"),
        ("simultaneous=true&by=region&statistic=sd", "simultaneous", "mean, sum and difference"),
    ],
)
async def test_what_cannot_be_read_off_is_refused_by_name(
    service: Service, survey: str, question: str, field: str, reason: str
):
    answer = await service.call("GET", f"/v1/studies/{survey}/plan?{question}", "analyse")
    errors = assert_problem(answer, "invalid_request", 422, field)["errors"]
    assert reason in next(one["reason"] for one in errors if one["field"] == field)


async def test_known_shares_undo_what_labels_are_drawn_to_the_middle_by(service: Service) -> None:
    """Labels are drawn by their own noise, all to one side, of which little is left in their sum."""
    regions = [f"r{number}" for number in range(20)]
    slug = await service.study(attributes={"region": regions}, tilt=0)
    records = [
        {
            "subject": f"{region}-{number}",
            "value": 5,
            "epsilon": 1,
            "trust": "central",
            "attributes": {"region": region},
        }
        for region in regions
        for number in range(20)
    ]
    path = f"/v1/studies/{slug}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).json()["created"] == 400
    shares = ",".join(f"{region}=.05" for region in regions)
    found = await ask(service, slug, f"mean?share=1&standardize=region:{shares}")
    lower, upper = found["interval"]["lower"], found["interval"]["upper"]
    centers = [group["error"]["center"] for group in found["groups"]]
    assert found["estimate"] == pytest.approx(min(100, max(0, sum(centers) / 20)))
    drawn = sum(group["estimate"] for group in found["groups"]) / 20
    assert drawn > found["estimate"], "all labels are drawn up, and are cut off at 0"
    assert lower <= found["estimate"] <= upper
