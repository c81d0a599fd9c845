"""Schedules on the study's page."""

from tests.api.service import Service
from tests.api.test_schedules import come
from tests.dashboard.browser import Browser, text_of

TIMES = {"every": "week", "quota": "1", "starts_at": "2100-01-04T09:00"}


async def test_a_question_is_scheduled_on_its_page_and_deleted(browser: Browser, service: Service) -> None:
    study = await service.study()
    await service.crowd(study)
    await browser.log_in("admin")
    page = f"/dashboard/studies/{study}"
    await browser.get(page)
    wrong = await browser.post(f"{page}/schedules", {**TIMES, "share": "0.2", "quota": "<b>"})
    assert wrong.status_code == 422
    assert "quota" in text_of(browser.page)
    assert "<b>" not in browser.page
    neither = await browser.post(f"{page}/schedules", {**TIMES, "share": "0.2"})
    assert (neither.status_code, "give either until" in text_of(browser.page)) == (422, True)
    made = await browser.post(f"{page}/schedules", {**TIMES, "share": "0.2", "newcomers": "true"})
    assert made.status_code == 303
    await browser.get(page)
    assert "newcomers only" in text_of(browser.page)
    assert "2100-01-04 09:00" in text_of(browser.page)
    [one] = (await service.call("GET", f"/v1/studies/{study}/schedules", "analyse")).json()["items"]
    assert one["question"] == {"statistic": "mean", "share": "0.2"}
    await browser.get("/dashboard/tokens")
    assert "1 in all time" in text_of(browser.page)
    release = (await come(service, one))["release"]
    await browser.get(page)
    assert f"/releases/{release}" in browser.page.partition('id="schedule"')[2].partition("</section>")[0]
    assert (await browser.post(f"{page}/schedules/{one['id']}/delete")).status_code == 303
    await browser.get(page)
    assert "newcomers only" not in text_of(browser.page)


async def test_an_analyst_sees_schedules_and_changes_none(browser: Browser, service: Service) -> None:
    study = await service.study()
    document = {"question": {"share": 0.1}, "every": "day", "until": 0.5, "quota": 1}
    later = document | {"starts_at": "2100-01-04T09:00:00Z"}
    await service.call("POST", f"/v1/studies/{study}/schedules", "admin", json=later)
    await browser.log_in("analyse")
    await browser.get(f"/dashboard/studies/{study}")
    assert "mean, share 0.1" in text_of(browser.page)
    assert "0.1 each time, until 0.5" in text_of(browser.page)
    assert "Ask it by itself" not in text_of(browser.page)
