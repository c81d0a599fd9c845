"""Two processes, 32 requests at once, one quota: exactly what fits is answered."""

import pytest

from tests.conftest import LiveServer
from tests.system.load import Crowd, Reply, at_once, findings, make_study

pytestmark = pytest.mark.system

CLIENTS = 32
SHARE = 0.01
FITTING = 7


async def test_two_processes_never_exceed_a_quota(live_server: LiveServer) -> None:
    service = live_server(processes=2)
    for relation in ("replace_one", "add_remove_one"):
        study = relation.replace("_", "-")
        make_study(service, study, relation=relation)
        people = [{"subject": f"p{n}", "value": n, "epsilon": 1, "trust": "central"} for n in range(50)]
        with service.client(service.create_token("contribute")) as contributor:
            sent = contributor.post(f"/v1/studies/{study}/contributions/batch", json=people)
        assert sent.json()["created"] == len(people), sent.text
        with service.client() as admin:
            made = admin.post("/v1/admin/tokens", json={"name": "a", "role": "analyse"}).json()
            quota = {"share": SHARE * FITTING, "period_seconds": 3600}
            assert admin.put(f"/v1/admin/tokens/{made['id']}/quota", json=quota).status_code == 200

        async with Crowd(service, made["token"]) as crowd:

            async def ask(turn: int, study: str = study, crowd: Crowd = crowd) -> Reply:
                question = {
                    "estimator": "hourglass" if study.startswith("add") else "uniform",
                    "share": SHARE,
                    "fresh": True,
                    "allow_worse": True,
                }
                return await crowd.post(f"/v1/studies/{study}/releases", question, turn=turn)

            replies = await at_once(range(2 * CLIENTS), ask, CLIENTS)

        answered = [reply for reply in replies if reply.status == 201]
        refused = [(reply.status, reply.code) for reply in replies if reply.status != 201]
        assert len(answered) == FITTING
        assert set(refused) == {(429, "quota_exhausted")}
        with service.client() as admin:
            used = admin.get(f"/v1/admin/tokens/{made['id']}/usage").json()["items"]
            budget = admin.get("/v1/subjects/p0/budget").json()
        assert used == [{"study": study, "releases": FITTING, "used": SHARE * FITTING}]
        spent = {line["study"]: line["spent"] for line in budget["studies"]}[study]
        assert 0 < spent <= SHARE * FITTING
    assert await findings(service) == []
