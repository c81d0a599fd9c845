"""The form that asks has every parameter of a plan, and pages show what is read off answers by labels."""

import re
from collections.abc import Mapping

import pytest

from app.web.question_params import query_parameters
from tests.api.service import Service
from tests.api.test_covariance import regions
from tests.dashboard.browser import Browser, text_of, within

REGIONS = {"north": 20, "south": 80, "east": 60}


@pytest.fixture
async def survey(service: Service) -> str:
    slug = await service.study(attributes={"region": [*REGIONS, "empty"]}, default_share=0.2)
    records = [
        {
            "subject": f"{region}{number}",
            "value": value,
            "epsilon": 5,
            "trust": "central",
            "attributes": {"region": region},
        }
        for region, value in REGIONS.items()
        for number in range(30)
    ]
    path = f"/v1/studies/{slug}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).status_code == 200
    return slug


async def ask(browser: Browser, study: str, fields: Mapping[str, str]) -> str:
    """Ask on the page of a study; returns where that leads."""
    page = await browser.get(f"/dashboard/studies/{study}")
    key = re.findall(r'name="key" value="([^"]+)"', page.text)[0]
    made = await browser.post(f"/dashboard/studies/{study}/releases", {"key": key, **fields})
    assert made.status_code == 303, text_of(made.text)
    return str(made.headers["location"])


async def test_the_form_has_every_parameter_of_a_plan_and_labels_for_all(
    browser: Browser, service: Service, survey: str
):
    """A parameter of HTTP is in the form of some study: one with labels, with a secret size, of measures."""
    two = {"a": {"lower": 0, "upper": 1}, "b": {"lower": 0, "upper": 2}}
    studies = [
        survey,
        await service.study(relation="add_remove_one"),
        await service.study(measures=two, lower=None, upper=None),
    ]
    await browser.log_in("analyse")
    seen = set()
    for study in studies:
        page = (await browser.get(f"/dashboard/studies/{study}")).text
        form = page[page.index(f'action="/dashboard/studies/{study}#plan"') :]
        form = form[: form.index("</form>")]
        names = re.findall(r'<(?:input|select) (?:type="checkbox" )?id="(\w+)" name="(\w+)"', form)
        seen |= {name for _, name in names}
        for id_, name in names:
            assert id_ == name
            labelled = f'<label for="{id_}">' in form or re.search(rf'<label><input [^>]*id="{id_}"', form)
            assert labelled, name
        for described in re.findall(r'aria-describedby="([^"]+)"', form):
            assert all(f'id="{one}"' in form for one in described.split())
    # A difference is of means, lines are on the page of a correlation, and a level is read off an answer.
    assert seen == {one["name"] for one in query_parameters(plan=True)} - {"of", "on", "at", "level"}


async def test_a_refusal_stands_at_its_field(browser: Browser, survey: str):
    await browser.log_in("analyse")
    path = f"/dashboard/studies/{survey}"
    page = await browser.get(f"{path}?statistic=difference&between=region:north,west&share=2")
    assert page.status_code == 422
    assert 'id="e-share"' in page.text
    page = await browser.get(f"{path}?statistic=difference&between=region:north,west")
    assert page.status_code == 422
    said = re.search(r'<input id="between"[^>]*aria-describedby="([^"]+)" aria-invalid="true"', page.text)
    assert said is not None
    assert said[1].split()[-1] == "e-between"
    assert "must name two labels of region: north, south, east, empty" in text_of(page.text)
    assert re.search(r'<details class="more" open><summary>Labels together', page.text)
    assert page.text.count("must name two labels") == 1


async def test_a_difference_is_asked_for_and_others_are_read_off_it_for_nothing(
    browser: Browser, service: Service, survey: str
):
    await browser.log_in("analyse")
    location = await ask(browser, survey, {"statistic": "difference", "between": "region:south,north"})
    page = await browser.get(location)
    text = text_of(page.text)
    assert "The mean of south less that of north" in text
    assert "The dashed line is at no difference" in text
    assert 'class="offered"' in page.text
    assert "drawn to the whole" in text
    assert 'circle class="step ahead"' in page.text
    assert "all labels together" not in text
    answer = await service.call(
        "GET", f"/v1/studies/{survey}/statistics/difference?between=region:south,north", "analyse"
    )
    assert 'value="region:south,north"' in page.text
    population = within(answer.json(), interval="population_interval")
    assert f"{population.lower} to {population.upper}" in text
    # All others are free: read on the same page.
    spent = await service.rows()
    path = location.partition("?")[0]
    for reading, shown in {
        "simultaneous=true": "all labels together",
        "standardize=region:north=.5,south=.25,east=.25,empty=0": "The mean over the shares north 0.5",
        "statistic=sum&simultaneous=true": "The sum for each label",
        "statistic=sd": "The sd for each label",
    }.items():
        page = await browser.get(f"{path}?{reading}")
        assert page.status_code == 200, text_of(page.text)
        assert shown in text_of(page.text), reading
    assert await service.rows() == spent
    assert "reach together" in (await browser.get(f"{path}?simultaneous=true")).text
    for wrong, status, reason in (
        ("statistic=difference&between=region:north,empty", 409, "no answer for region:empty"),
        ("standardize=region:north=1", 422, "must give every label of region"),
        ("between=region:north,south", 422, "applies to a difference"),
        ("statistic=median", 422, "must be one of"),
    ):
        page = await browser.get(f"{path}?{wrong}")
        assert (page.status_code, reason in text_of(page.text)) == (status, True), text_of(page.text)


async def test_shares_of_two_attributes_are_read_off_the_answer_for_their_combinations(
    browser: Browser, service: Service
):
    study = await service.study(attributes={"region": ["north", "south"], "age": ["young", "old"]}, tilt=0)
    records = [
        {
            "subject": f"p{number}",
            "value": 20 * (number % 4),
            "epsilon": 5,
            "trust": "central",
            "attributes": {
                "region": ("north", "south")[number % 2],
                "age": ("young", "old")[number // 2 % 2],
            },
        }
        for number in range(80)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).status_code == 200
    await browser.log_in("analyse")
    location = await ask(browser, study, {"statistic": "mean", "by": "region,age"})
    plain = await browser.get(location)
    assert ">weight</th>" not in plain.text
    asked = "standardize=region:north=.3,south=.7;age:young=.4,old=.6"
    page = await browser.get(f"{location.partition('?')[0]}?{asked}")
    assert page.status_code == 200, text_of(page.text)
    assert "The mean over the shares north 0.3, south 0.7; young 0.4, old 0.6" in text_of(page.text)
    assert ">weight</th>" in page.text
    assert "0.12" in text_of(page.text), "of independent attributes the weight is the product of shares"


async def test_an_answer_without_labels_has_no_difference_and_one_of_shares_nothing_to_read(
    browser: Browser, service: Service, survey: str
):
    await browser.log_in("analyse")
    path = await ask(browser, survey, {"statistic": "sum"})
    page = await browser.get(path)
    assert "The sum; in parentheses" in text_of(page.text)
    assert 'id="between"' not in page.text
    for reading in ("statistic=difference&between=region:north,south", "simultaneous=true"):
        assert (await browser.get(f"{path.partition('?')[0]}?{reading}")).status_code in (409, 422)
    assert "Read off it" not in (await browser.get(await ask(browser, survey, {"statistic": "median"}))).text


async def test_lists_say_what_studies_of_choices_and_measures_ask(browser: Browser, service: Service):
    two = {"income": {"lower": 0, "upper": 9000}, "age": {"lower": 18, "upper": 98}}
    await service.study(choices=["red", "green"], lower=None, upper=None)
    await service.study(measures=two, lower=None, upper=None)
    await browser.log_in("analyse")
    text = text_of((await browser.get("/dashboard/studies")).text)
    assert "2 choices" in text
    assert "income 0 to 9,000, age 18 to 98" in text


async def test_shares_by_labels_have_a_plot_and_a_table_each(browser: Browser, service: Service):
    study = await service.study(
        lower=None,
        upper=None,
        choices=["red", "green"],
        attributes={"region": ["north", "south", "empty"]},
        default_share=1,
    )
    records = [
        {
            "subject": f"p{place}",
            "value": "red",
            "epsilon": 5,
            "trust": "central",
            "attributes": {"region": ("north", "south")[place % 2]},
        }
        for place in range(40)
    ]
    sent = await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=records)
    assert sent.json()["created"] == 40
    await browser.log_in("analyse")
    form = (await browser.get(f"/dashboard/studies/{study}")).text
    assert 'id="by"' in form
    assert 'id="standardize"' not in form
    page = await browser.get(await ask(browser, study, {"statistic": "shares", "by": "region"}))
    text = text_of(page.text)
    assert "By region Each person was charged for their own label only." in text
    assert "north 20 people" in text
    assert "No person with this label takes part." in text
    assert page.text.count("Share of the people by choice: ") == 2


async def test_a_median_by_labels_has_a_plot_and_a_table(browser: Browser, survey: str):
    await browser.log_in("analyse")
    page = await browser.get(await ask(browser, survey, {"statistic": "median", "by": "region"}))
    assert "By region Each person was charged for their own label and for all people." in text_of(page.text)
    assert "The quantile for each label, with 95 % intervals" in page.text
    assert "No person with this label takes part." in text_of(page.text)


async def test_counts_and_descriptions_by_labels_are_shown(browser: Browser, survey: str):
    await browser.log_in("analyse")
    assert (
        "(root mean square of the count, people)"
        in (await browser.get(f"/dashboard/studies/{survey}?statistic=count")).text
    )
    page = await browser.get(await ask(browser, survey, {"statistic": "count", "by": "region"}))
    assert "The count for each label, with 95 % intervals" in page.text
    assert "Each person was charged" not in page.text
    page = await browser.get(await ask(browser, survey, {"statistic": "describe", "by": "region"}))
    text = text_of(page.text)
    assert "By region Each person was charged for their own label and for all people." in text
    assert "quartiles, with 95 % intervals one by one: north" in text
    assert "takes part." in text


async def test_a_covariance_is_asked_for_where_two_numbers_have_one(browser: Browser, service: Service):
    three = {
        "income": {"lower": 0, "upper": 90},
        "age": {"lower": 18, "upper": 98},
        "party": {"choices": ["red", "green"]},
    }
    labels = {"region": ["north", "south", "empty"]}
    bare = {"lower": None, "upper": None, "default_share": 0.2, "attributes": labels}
    study = await service.study(measures=three, **bare)
    records = [
        {
            "subject": f"p{place}",
            "values": {"income": place, "age": 20 + place, "party": "red"},
            "epsilon": 5,
            "trust": "central",
            "attributes": {"region": labels["region"][place % 2]},
        }
        for place in range(60)
    ]
    sent = await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=records)
    assert sent.json()["created"] == 60
    await browser.log_in("analyse")
    # The form sends a measure, too: it is of no account here, nor to a count.
    fields = {"statistic": "covariance", "measure": "party", "measures": "income,age"}
    page = await browser.get(f"/dashboard/studies/{study}?" + "&".join(f"{k}={v}" for k, v in fields.items()))
    assert page.status_code == 200, text_of(page.text)
    assert "of the covariance, in the product of both units" in text_of(page.text)
    pairs = page.text.partition('name="measures"')[2].partition("</select>")[0]
    assert re.findall(r'<option value="([^"]*,[^"]*)"', pairs) == ["income,age"]
    page = await browser.get(await ask(browser, study, fields))
    answer = await service.call(
        "GET", f"/v1/studies/{study}/statistics/covariance?measures=income,age", "analyse"
    )
    text, population = text_of(page.text), within(answer.json(), interval="population_interval")
    assert "The covariance of income and age" in text
    assert f"for the population {population.lower} to {population.upper}" in text
    assert "covariance, income and age" in text_of((await browser.get(f"/dashboard/studies/{study}")).text)
    page = await browser.get(await ask(browser, study, {**fields, "by": "region"}))
    assert "By region Each person was charged for their own label only." in text_of(page.text)
    assert "The covariance for each label, with 95 % intervals" in page.text
    assert "No person with this label takes part." in text_of(page.text)
    page = await browser.get(await ask(browser, study, {"statistic": "count", "measure": "income"}))
    assert "The number of people" in text_of(page.text)
    secret = await service.study(measures=three, relation="add_remove_one", **bare)
    page = await browser.get(await ask(browser, secret, fields))
    assert "The covariance of income and age" in text_of(page.text)
    assert "and can still pay" in text_of(page.text)
    page = await browser.get(await ask(browser, secret, {**fields, "by": "region"}))
    assert "empty" in text_of(page.text)
    assert "takes part." not in text_of(page.text)
    assert "covariance, income and age" in text_of((await browser.get(f"/dashboard/studies/{secret}")).text)
    lines = {**fields, "statistic": "correlation", "share": "0.5", "allow_worse": "true"}
    for one in (study, secret):
        page = await browser.get(await ask(browser, one, lines))
        text = text_of(page.text)
        assert "The correlation of income and age" in text
        assert "The line of income on age" in text
        assert text.count("The band holds at all places at once, for these people.") >= 2
        assert "The line of age on income, with a 95 % band for these people" in page.text
        assert "intercept" in text
    for other in (
        await service.study(),
        await service.study(measures={name: three[name] for name in ("income", "party")}, **bare),
    ):
        page = await browser.get(f"/dashboard/studies/{other}")
        assert page.status_code == 200
        assert 'value="covariance"' not in page.text
        assert 'value="correlation"' not in page.text
        assert 'id="measures"' not in page.text


async def test_lines_of_each_label_and_where_they_are_are_on_the_page_of_a_correlation(
    browser: Browser, service: Service
):
    study = await regions(service)
    await browser.log_in("analyse")
    fields = {"statistic": "correlation", "measures": "income,age", "by": "region", "share": "0.5"}
    path = await ask(browser, study, fields)
    page = await browser.get(path)
    assert "The lines of each region" in page.text
    assert 'aria-label="The line of income on age, with a 95 % band for these people' in page.text
    assert "The line of income on age: north" in text_of(page.text)
    assert "No person with region east takes part." in text_of(page.text)
    page = await browser.get(f"{path}?on=age&at=50&level=0.8")
    release, question = path.rpartition("/")[2], {"of": "income", "on": "age", "by": "region", "share": "0.5"}
    line = await service.call(
        "GET",
        f"/v1/studies/{study}/statistics/regression",
        "analyse",
        params={**question, "at": "50", "level": "0.8"},
    )
    assert line.json()["id"] == release
    shown = within(line.json()["prediction"])
    assert f"{shown.estimate} ({shown.lower} to {shown.upper})" in text_of(page.text)
    assert "The line of income at age 50; in parentheses its 80 % interval" in text_of(page.text)
    for wrong, reason in (("on=party&at=50", "must be one of"), ("on=age&at=200", "must lie in the range")):
        page = await browser.get(f"{path}?{wrong}")
        assert page.status_code == 422
        assert reason in page.text


async def test_cells_of_two_attributes_are_asked_for_and_shown(browser: Browser, service: Service):
    labels = {"region": ["north", "south"], "age": ["-29", "30-"], "sex": ["f", "m"]}
    study = await service.study(attributes=labels, default_share=0.2)
    cells = [
        {"region": region, "age": age, "sex": "f"} for region in labels["region"] for age in labels["age"]
    ]
    records = [
        {"subject": f"p{n}", "value": 50, "epsilon": 5, "trust": "central", "attributes": cells[n % 4]}
        for n in range(120)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).status_code == 200
    await browser.log_in("analyse")
    page = await browser.get(f"/dashboard/studies/{study}")
    assert '<option value="region,age">region and age</option>' in page.text
    assert '<option value="region,age,sex">' in page.text
    for statistic in ("mean", "histogram", "describe", "median", "count"):
        shown = await browser.get(await ask(browser, study, {"statistic": statistic, "by": "region,age"}))
        assert shown.status_code == 200, text_of(shown.text)
        told = text_of(shown.text)
        assert "By region, age" in told
        for cell in ("north, -29", "north, 30-", "south, -29", "south, 30-"):
            assert cell in told, (statistic, cell)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove_one"])
async def test_a_table_of_two_choices_is_asked_for_and_shown(
    browser: Browser, service: Service, relation: str
):
    measures = {
        "age": {"lower": 0, "upper": 100},
        "party": {"choices": ["red", "<green>"]},
        "size": {"lower": 0, "upper": 9},
        "sex": {"choices": ["f", "m", "x"]},
    }
    study = await service.study(
        lower=None, upper=None, measures=measures, default_share=0.5, relation=relation
    )
    records = [
        {
            "subject": f"p{n}",
            "values": {"age": 30, "size": 1, "party": ("red", "<green>")[n % 2], "sex": "fmx"[n % 3]},
            "epsilon": 5,
            "trust": "central",
        }
        for n in range(120)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).status_code == 200
    await browser.log_in("analyse")
    page = await browser.get(f"/dashboard/studies/{study}")
    assert '<option value="party,sex">party and sex</option>' in page.text
    # The form sends the pair that stands first, which is of numbers.
    fields = {"statistic": "table", "measures": "age,size", "allow_worse": "true"}
    shown = await browser.get(await ask(browser, study, fields))
    assert shown.status_code == 200, text_of(shown.text)
    told = text_of(shown.text)
    assert "party and sex" in told
    assert "If both choices were independent" in told
    assert shown.text.count('<rect class="bar a" opacity=') == 12, "six cells, wide and narrow"
    assert "&lt;green&gt;" in shown.text
    assert "<green>" not in shown.text
    await ask(browser, study, {**fields, "statistic": "correlation"})
    # The list of answers has both.
    assert (await browser.get(f"/dashboard/studies/{study}")).status_code == 200
