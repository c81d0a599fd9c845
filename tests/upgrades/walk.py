"""A walk through all that the SDK of a version can do: `python walk.py BEGIN|AGAIN URL TOKEN DIRECTORY NAME`.

The tests run it with the SDKs and services of former versions and of this one. BEGIN makes studies, asks and
takes part, and prints as JSON which methods were called, and which there are. AGAIN repeats on the same
device what BEGIN gave away, and prints what came of it.
"""

import functools
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from dither import Client, Record, save_table

CALLED: set[str] = set()
PUBLIC = {name for name in dir(Client) if not name.startswith("_")}

PEOPLE = 300
ADA = {"subject": "ada", "value": 34, "epsilon": 1, "trust": "local"}
"""What the device gives away, and gives away no second time."""

TOKEN = "app.token"
"""Where the app's token is kept in the directory, to go on with."""


def _recorded(name: str) -> Any:
    method = getattr(Client, name)

    @functools.wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        CALLED.add(name)
        return method(*arguments, **options)

    return call


for _name in PUBLIC:
    setattr(Client, _name, _recorded(_name))


def _look(answer: Any) -> Any:
    """Read an answer as people do, or all of several."""
    for one in answer if isinstance(answer, Iterator) else [answer]:
        assert str(one)
    return answer


def begin(url: str, token: str, directory: Path, name: str) -> dict[str, Any]:
    """Call every method once, and read each answer as a person would."""
    admin = Client(url, token)
    key = admin.create_token("app", role="contribute").token
    (directory / TOKEN).write_text(key)
    app = Client(url, key, directory=directory)
    made = admin.create_token("desk", role="analyse")
    desk = Client(url, made.token)
    source = random.Random(7)
    common: dict[str, Any] = {
        "epsilon_min": "0.1",
        "epsilon_max": 2,
        "attributes": {"region": ["north", "south"]},
    }
    trust: Any = ["central", "local", "public"]
    numbers, poll, house, places = (f"{name}-{kind}" for kind in ("numbers", "poll", "house", "places"))
    _look(admin.create_study(numbers, lower=0, upper=100, trust=trust, tilt="0.1", **common))
    admin.create_study(poll, choices=["red", "green"], trust=trust, tilt="0.1", **common)
    both = {"income": {"lower": 0, "upper": 9000}, "age": {"lower": 18, "upper": 98}}
    admin.create_study(house, measures=both, tilt="0.1", **common)
    admin.create_study(places, lower=0, upper=100, dimension=2, tilt="0.1", **common)
    _look(admin.edit_study(numbers, title="How far?", reason="a title"))

    for study in (numbers, poll, house, places):
        records = []
        for number in range(PEOPLE):
            value: Any = {
                numbers: source.randrange(100),
                poll: ("red", "green")[number % 2],
                house: {"income": source.randrange(9000), "age": 18 + number % 80},
                places: [source.randrange(100), source.randrange(100)],
            }[study]
            labels = {"region": ("north", "south")[number % 2]}
            records.append(Record(f"{name}-{number}", value, 2, "central", attributes=labels))
        assert app.contribute_many(study, records).created == PEOPLE
    north = {"attributes": {"region": "north"}}
    ada: dict[str, Any] = {**ADA, **north, "subject": f"{name}-ada"}
    _look(app.contribute(numbers, **ada))
    _look(app.contribute(numbers, **ada))
    bob: dict[str, Any] = {"subject": f"{name}-bob", "value": 1, "epsilon": 1, "trust": "central", **north}
    app.contribute(numbers, **bob)
    _look(app.replace(numbers, **{**bob, "value": 2}))
    app.withdraw(numbers, subject=f"{name}-bob")
    _look(app.study(numbers))

    _look(desk.plan(numbers, share="0.2"))
    _look(desk.mean(numbers, share="0.1"))
    _look(desk.mean(numbers, share="0.1", by="region"))
    _look(desk.sum(numbers, share="0.1"))
    _look(desk.variance(numbers, share="0.05"))
    _look(desk.sd(numbers, share="0.05"))
    between = desk.difference(numbers, between={"region": ["north", "south"]}, share="0.1")
    _look(between)
    _look(desk.histogram(numbers, bins=4, share="0.05"))
    _look(desk.distribution(numbers, bins=4, share="0.05"))
    _look(desk.quantile(numbers, q="0.9", share="0.05"))
    _look(desk.median(numbers, share="0.05"))
    _look(desk.describe(numbers, share="0.1"))
    _look(desk.count(numbers))
    _look(desk.shares(poll, share="0.1"))
    _look(desk.covariance(house, "income", "age", share="0.2"))
    _look(desk.mean(places, share="0.1"))
    sharper = _look(desk.release(numbers, share="0.2"))
    assert desk.find_release(sharper.id) == sharper
    _look(desk.releases(numbers))
    _look(desk.studies())
    save_table([sharper], directory / "answer.csv")
    assert "estimate" in (directory / "answer.csv").read_text()

    search: dict[str, Any] = {"protocol": "minimum", "epsilon": 1, "participants": 4, "rounds": 2}
    opened = _look(admin.create_session(numbers, round_seconds=1, **search))
    _look(app.participate(opened.id, subject=f"{name}-ada", value=34))
    _look(desk.session(opened.id))
    _look(desk.sessions(numbers))
    centers: dict[str, Any] = {
        "protocol": "kmeans",
        "epsilon": "0.4",
        "rounds": 2,
        "centres": [[20, 20], [80, 80]],
    }
    clusters = admin.create_session(places, **centers)
    _look(admin.close_round(clusters.id, 1))
    _look(admin.finish_session(clusters.id))

    if hasattr(Client, "invite") and "invitations" in httpx.get(f"{url}/openapi.json").text:
        _since_1_0(admin, app, desk, name)

    _look(admin.set_quota(made.id, share="0.9", period_seconds=3600))
    _look(admin.token_usage(made.id))
    admin.lift_quota(made.id)
    _look(admin.tokens())
    _look(admin.find_token(made.id))
    _look(admin.rotate_token(made.id))
    admin.revoke_token(made.id)
    _look(admin.set_budget(f"{name}-ada", epsilon=50, reason="asked for"))
    _look(admin.raise_budgets(epsilon=1, reason="a new year"))
    _look(admin.budgets())
    _look(admin.budget(f"{name}-0"))
    _look(admin.close_study(poll))
    _look(admin.archive_study(house, reason="it is over"))
    _look(admin.retire_study(places))
    _look(app.ledger())
    for client in (admin, app, desk):
        client.close()
    return {"methods": sorted(CALLED), "public": sorted(PUBLIC)}


def _since_1_0(admin: Client, app: Client, desk: Client, name: str) -> None:
    """Call what the SDK and the service of 0.9.0 have not."""
    numbers, house, pairs = f"{name}-numbers", f"{name}-house", f"{name}-pairs"
    choices = {"party": {"choices": ["red", "green"]}, "pet": {"choices": ["cat", "dog"]}}
    weeks = [f"{name}-week-{week}" for week in (1, 2)]
    for week in weeks:
        admin.create_study(week, lower=0, upper=10, series=name)
    admin.create_study(pairs, measures=choices)
    for study in (pairs, *weeks):
        records = []
        for number in range(PEOPLE):
            both = {"party": ("red", "green")[number % 2], "pet": ("cat", "dog")[number % 3 // 2]}
            subject = f"{name}-later-{number}"
            records.append(Record(subject, both if study == pairs else number % 9, 2, "central"))
        assert app.contribute_many(study, records).created == PEOPLE
    _look(desk.table(pairs, "party", "pet", share="0.5"))
    both_numbers: dict[str, Any] = {"measures": "income,age", "share": "0.5", "allow_worse": True}
    desk.release(house, statistic="correlation", **both_numbers)
    _look(desk.correlation(house, "income", "age", share="0.5"))
    _look(desk.regression(house, of="income", on="age"))
    for week in weeks:
        desk.mean(week, share="0.2")
    _look(desk.change(weeks[1]))
    _look(desk.trend(weeks[1]))
    _look(desk.plan_several(weeks[0], [{"statistic": "mean"}, {"statistic": "median"}]))

    invited = _look(admin.invite(numbers, kind="open", limit=3))
    _look(admin.invitations(numbers))
    _look(admin.invitation(numbers, invited.id))
    admin.revoke_invitation(numbers, invited.id)
    told = _look(admin.create_webhook("https://webhooks.invalid/walk", events=["released"]))
    _look(admin.webhooks())
    _look(admin.find_webhook(told.id))
    admin.delete_webhook(told.id)
    schedule = _look(admin.create_schedule(numbers, {"share": "0.1"}, every="day", until=1, quota=1))
    _look(desk.schedules(numbers))
    _look(desk.find_schedule(numbers, schedule.id))
    admin.delete_schedule(numbers, schedule.id)
    page = _look(desk.publish(numbers, [desk.mean(numbers).id], title="How far?"))
    _look(desk.publications(numbers))
    desk.withdraw_publication(numbers, page.slug)


def again(url: str, token: str, directory: Path, name: str) -> dict[str, Any]:
    """Contribute the same once more; report and ledger are those of before."""
    with Client(url, token) as admin:
        assert f"{name}-numbers" in {study.slug for study in admin.studies()}
    with Client(url, (directory / TOKEN).read_text(), directory=directory) as app:
        ada: dict[str, Any] = {**ADA, "subject": f"{name}-ada", "attributes": {"region": "north"}}
        stored = app.contribute(f"{name}-numbers", **ada)
        ledger = app.ledger(f"{name}-ada")
        spent = [str(entry.epsilon) for entry in ledger.entries]
        return {"status": stored.status, "entries": spent, "total": str(ledger.totals[f"{name}-ada"])}


def main() -> None:
    """Walk."""
    step, url, token, directory, name = sys.argv[1:]
    found = {"BEGIN": begin, "AGAIN": again}[step](url, token, Path(directory), name)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
