"""How a mean changed since the last study of a series, and the trend: off what is published, for nothing."""

from typing import Any

import pytest

from tests.api.service import Service, assert_problem
from tests.api.test_level import sql

MOOD: dict[str, Any] = {"series": "mood", "lower": 0, "upper": 100}
REGIONS: dict[str, Any] = {"attributes": {"region": ["north", "south"]}}


async def week(service: Service, number: int, value: int, share: float | None = 0.5, **more: Any) -> str:
    """A study of the series, with people who all say the same, and its answer."""
    study = await service.study(slug=f"mood-{number}", **{**MOOD, **more})
    labels = ("north", "south")
    records = [
        {
            "subject": f"p{place}",
            "value": value,
            "epsilon": 2,
            "trust": "central",
            **({"attributes": {"region": labels[place % 2]}} if "attributes" in more else {}),
        }
        for place in range(300)
    ]
    path = f"/v1/studies/{study}"
    assert (await service.call("POST", f"{path}/contributions/batch", "contribute", json=records)).is_success
    if share is not None:
        asked = await service.call("POST", f"{path}/releases", "analyse", json={"share": share})
        assert asked.status_code == 201, asked.text
    return study


async def read(service: Service, study: str, statistic: str, token: str = "analyse", **query: str) -> Any:
    path = f"/v1/studies/{study}/statistics/{statistic}"
    return await service.call("GET", path, token, params=query)


async def mean(service: Service, study: str) -> dict[str, Any]:
    found = await service.call("GET", f"/v1/studies/{study}/statistics/mean", "analyse")
    return dict(found.json())


@pytest.mark.parametrize("noise", [{}, {"noise": "gaussian", "delta": 1e-6}], ids=["laplace", "gaussian"])
async def test_a_change_and_a_trend_are_read_off_what_is_published(
    service: Service, noise: dict[str, Any]
) -> None:
    studies = [await week(service, number, 20 + 10 * number, **noise) for number in (1, 2, 3)]
    means = [await mean(service, study) for study in studies]
    before = await service.rows()
    change = (await read(service, studies[2], "change")).json()
    centers = [one["error"]["center"] for one in means]
    assert change["estimate"] == pytest.approx(centers[2] - centers[1])
    assert (change["since"], change["study"], change["series"]) == (studies[1], studies[2], "mood")
    assert [one["release"] for one in change["answers"]] == [one["id"] for one in means[1:]]
    halves = [(one["interval"]["upper"] - one["interval"]["lower"]) / 2 for one in means]
    half = (change["interval"]["upper"] - change["interval"]["lower"]) / 2
    assert max(halves[1:]) < half < halves[1] + halves[2], "noise of two studies is independent"
    assert change["interval"]["level"] == 0.95
    trend = (await read(service, studies[2], "trend")).json()
    assert trend["estimate"] == pytest.approx((centers[2] - centers[0]) / 2)
    assert trend["since"] is None
    assert len(trend["answers"]) == 3
    assert (await read(service, studies[1], "trend")).json()["estimate"] == pytest.approx(
        centers[1] - centers[0]
    )
    for one in (change, trend):
        assert f"since {one['answers'][0]['study']}" in one["in_words"]
        assert one["interval"]["lower"] <= one["estimate"] <= one["interval"]["upper"]
    assert await service.rows() == before, "it costs nothing, and writes nothing"


async def test_a_mean_that_was_clipped_is_said_to_count_as_before(service: Service) -> None:
    studies = [await week(service, number, 40) for number in (1, 2)]
    clipped = "a mean that noise carried out of the range counts as what it was before it was clipped"
    plain = (await read(service, studies[1], "change")).json()
    assert clipped not in plain["in_words"]
    first = await mean(service, studies[0])
    await sql(service, "ALTER TABLE release DISABLE TRIGGER USER")
    await sql(
        service,
        "UPDATE release SET body = convert_to(CAST(jsonb_set(CAST(convert_from(body, 'UTF8') AS jsonb), "
        f"'{{error,center}}', '-5') AS text), 'UTF8') WHERE id = '{first['id']}'",
    )
    for statistic in ("change", "trend"):
        said = (await read(service, studies[1], statistic)).json()
        assert said["estimate"] > plain["estimate"]
        assert said["in_words"].endswith(f"; {clipped}")


async def test_studies_without_an_answer_are_left_out_and_named(service: Service) -> None:
    first, second, third = [
        await week(service, number, 40, share=None if number == 2 else 0.5) for number in (1, 2, 3)
    ]
    await service.study(slug="choice", series="mood", choices=["a", "b"], lower=None, upper=None)
    last = await week(service, 4, 50)
    change = (await read(service, third, "change")).json()
    assert (change["since"], change["without_answer"]) == (first, [second])
    trend = (await read(service, last, "trend")).json()
    assert trend["without_answer"] == [second, "choice"]
    assert [one["study"] for one in trend["answers"]] == [first, third, last]
    for study in (first, second):
        for statistic in ("change", "trend"):
            assert_problem(await read(service, study, statistic), "estimator_not_applicable", 409)


async def test_a_token_of_some_studies_reads_no_others(service: Service) -> None:
    studies = [await week(service, number, 40) for number in (1, 2, 3)]
    token = await service.token("analyse", studies=frozenset([studies[0], studies[2]]))
    change = (await read(service, studies[2], "change", token)).json()
    assert change["since"] == studies[0]
    assert studies[1] not in str(change)
    assert (await read(service, studies[1], "change", token)).status_code == 403


async def test_people_with_a_label_and_measures_have_their_own(service: Service) -> None:
    studies = [await week(service, number, 20 + 10 * number, **REGIONS) for number in (1, 2)]
    asked = {"where": "region:north"}
    missing = await read(service, studies[1], "change", **asked)
    assert "means of region:north, and this study has none" in missing.json()["detail"]
    assert_problem(missing, "estimator_not_applicable", 409)
    for study in studies:
        own = await service.call(
            "POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 0.5, **asked}
        )
        assert own.status_code == 201
    found = (await read(service, studies[1], "change", **asked)).json()
    assert found["where"] == {"region": "north"}
    for bad, field in (
        ({"where": "region:west"}, "where"),
        ({"share": "0.1"}, "share"),
        ({"by": "region"}, "by"),
        ({"bins": "3"}, "bins"),
        ({"estimator": "kvh"}, "estimator"),
        ({"until": "1"}, "until"),
        ({"measure": "income"}, "measure"),
        ({"of": "sum"}, "of"),
    ):
        assert_problem(await read(service, studies[1], "change", **bad), "invalid_request", 422, field)


async def test_secret_answers_say_the_level_that_two_of_them_have(service: Service) -> None:
    secret = {"relation": "add_remove_one", "epsilon": {"min": 1, "max": 4}, "default_share": 0.5}
    studies = [await week(service, number, 40, share=0.5, **secret) for number in (1, 2)]
    found = (await read(service, studies[1], "change")).json()
    assert found["interval"]["level"] == 0.9
    assert "(90% interval)" in found["in_words"]


async def test_secret_answers_of_any_share_are_read(service: Service) -> None:
    secret = {"relation": "add_remove_one", "epsilon": {"min": 1, "max": 4}, "default_share": 0.25}
    studies = [await week(service, number, 40, share=0.5, **secret) for number in (1, 2)]
    listed = (await service.call("GET", f"/v1/studies/{studies[1]}/releases", "analyse")).json()["items"]
    before = await service.rows()
    found = await read(service, studies[1], "change")
    assert found.status_code == 200, found.text
    assert [one["release"] for one in found.json()["answers"]][1:] == [one["id"] for one in listed]
    assert await service.rows() == before, "it costs nothing, and writes nothing"


async def test_a_study_in_no_series_has_neither(service: Service) -> None:
    study = await service.study(slug="alone")
    for statistic in ("change", "trend"):
        assert_problem(await read(service, study, statistic), "estimator_not_applicable", 409)
    planned = await service.call("GET", f"/v1/studies/{study}/plan?statistic=change", "analyse")
    assert_problem(planned, "invalid_request", 422, "statistic")
