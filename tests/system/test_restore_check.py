"""An older backup is restored: what was published after it cannot be paid for with the same money again."""

import json
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest

from app.services.admin.restoring import Export, Lost, UnreadableExport, read_export
from tests.conftest import LiveServer
from tests.support.databases import Server, scratch_directory
from tests.support.live import LiveService
from tests.system.load import make_study
from tests.system.test_backup import script, tool

pytestmark = pytest.mark.system

SEARCH = {"protocol": "minimum", "epsilon": 8, "participants": 20, "rounds": 2, "mode": "budget_split"}


def ask(service: LiveService, study: str, **question: object) -> tuple[int, dict[str, object]]:
    with service.client(service.create_token("analyse")) as analyst:
        response = analyst.post(
            f"/v1/studies/{study}/releases", json={**question, "fresh": True, "allow_worse": True}
        )
    return response.status_code, response.json()


def answer(service: LiveService, session: str, subject: str, status: int = 201) -> dict[str, object]:
    with service.client(service.create_token("contribute")) as contributor:
        document = {"subject": subject, "round": 1, "answer": 1}
        response = contributor.post(f"/v1/sessions/{session}/answers", json=document)
    assert response.status_code == status, response.text
    return dict(response.json())


def fill(service: LiveService, studies: Sequence[str]) -> str:
    """Studies with a crowd each, and a search with one answer; the search's id."""
    people = [{"subject": f"p{n}", "value": n, "epsilon": 1, "trust": "central"} for n in range(20)]
    for study in studies:
        make_study(service, study)
        with service.client(service.create_token("contribute")) as contributor:
            assert contributor.post(f"/v1/studies/{study}/contributions/batch", json=people).is_success
    with service.client() as admin:
        made = admin.post("/v1/studies/searched/sessions", json=SEARCH)
        assert made.status_code == 201, made.text
    session = str(made.json()["id"])
    answer(service, session, "early")
    return session


def test_after_a_restore_no_one_pays_twice_with_the_same_epsilon(
    live_server: LiveServer, postgres_server: Server
) -> None:
    service = live_server()
    assert service.database_url is not None
    session = fill(service, ["asked", "calm", "searched"])
    status, kept = ask(service, "asked", share=0.25)
    assert status == 201
    assert ask(service, "calm", share=0.5)[0] == 201
    with scratch_directory() as directory, postgres_server.empty_database() as url:
        here = {"DITHER_DATABASE_URL": service.database_url}
        there = {"DITHER_DATABASE_URL": url}
        dump = Path(script("backup.sh", directory, **here).stdout.strip())

        # After the backup: three quarters of everybody's epsilon, an answer to a session, a study.
        status, lost = ask(service, "asked", share=0.75)
        assert status == 201
        answer(service, session, "late")
        make_study(service, "young")
        with service.client(service.create_token("contribute")) as contributor:
            young = {"subject": "p0", "value": 1, "epsilon": 1, "trust": "central"}
            assert contributor.post("/v1/studies/young/contributions", json=young).status_code == 201
        status, orphan = ask(service, "young")
        assert status == 201
        exported = directory / "export.jsonl"
        exported.write_text(tool("audit", "export", **here).stdout)
        assert len(exported.read_text().splitlines()) == 5
        newest = tool("audit", "export", "--after", "3", **here).stdout
        assert [json.loads(line).get("release") for line in newest.splitlines()] == [orphan["id"], None]
        over_http = {}
        with service.client() as admin:
            for name, path in {
                "study": "/v1/studies/asked/releases",
                "all": "/v1/admin/releases?study=asked",
                "csv": "/v1/admin/ledger/export?study=asked",
            }.items():
                over_http[name] = directory / name
                over_http[name].write_text(admin.get(path).text)

        restored = script("restore.sh", dump, exported, **there)
        assert restored.returncode == 1, restored.stderr  # one study is not there to be retired
        assert "the ledger is clean" in restored.stdout
        said = restored.stdout.splitlines()
        assert "Compared 4 releases and 1 session." in said
        assert f"lost: release {lost['id']} of asked" in said
        assert f"lost: answers to session {session} of searched" in said
        assert f"lost: release {orphan['id']} of young" in said
        assert [line.split(";")[0] for line in said if line.startswith("retired")] == [
            "retired: asked",
            "retired: searched",
        ]
        assert any(line.startswith("unknown: young is not in the database") for line in said)
        again = tool("restore-check", str(exported), **there)
        assert [line for line in again.stdout.splitlines() if line.startswith("retired")] == [
            "retired before: asked",
            "retired before: searched",
        ]
        with service.client() as admin:
            over_http["one"] = directory / "one"
            over_http["one"].write_text(admin.get("/v1/admin/releases?study=asked&limit=1").text)
        one = tool("restore-check", str(over_http.pop("one")), **there)
        assert (one.returncode, "give the pages that follow" in one.stderr) == (1, True)
        for file in over_http.values():
            assert set(read_export(file.read_text()).releases) == {
                UUID(str(one["id"])) for one in (kept, lost)
            }
        same = tool("restore-check", *map(str, over_http.values()), **there)
        assert f"lost: release {lost['id']} of asked\nretired before: asked" in same.stdout, same.stderr
        assert same.returncode == 0

        key = (service.data_directory / "subject.key").read_text().strip()
        service.stop()
        service.database_url = url
        service.environment = {"DITHER_SUBJECT_KEY": key}
        service.start()
        status, refused = ask(service, "asked", share=0.75)
        assert (status, refused["code"]) == (409, "study_retired")
        with service.client(service.create_token("analyse")) as analyst:
            # The best answer that is left is read; a question that takes more of people is not answered.
            for read in ("mean?share=0.25", "mean", "variance"):
                assert analyst.get(f"/v1/studies/asked/statistics/{read}").json()["id"] == kept["id"]
            for made in ("mean?share=0.75", "mean?share=0.26", "mean?estimator=uniform"):
                refused = analyst.get(f"/v1/studies/asked/statistics/{made}").json()
                assert refused["code"] == "study_retired", made
        assert ask(service, "calm", share=0.5)[0] == 201
        assert answer(service, session, "late", 409)["code"] == "round_closed"
        with service.client() as admin:
            ended = admin.get(f"/v1/sessions/{session}").json()
            reserved = admin.get("/v1/subjects/early/budget").json()["epsilon"]["reserved"]
        assert (ended["state"], reserved) == ("finished", 8)
        with service.client(service.create_token("contribute")) as contributor:
            newcomer = {"subject": "new", "value": 1, "epsilon": 1, "trust": "central"}
            closed = contributor.post("/v1/studies/asked/contributions", json=newcomer)
            assert (closed.status_code, closed.json()["code"]) == (409, "study_closed")
            assert contributor.delete("/v1/studies/asked/contributions/p7").status_code == 204
        with service.client() as admin:
            budget = admin.get("/v1/subjects/p7/budget").json()
        assert {line["study"]: line["epsilon"] for line in budget["studies"]}["asked"] == 1
        audited = tool("audit", **there)
        assert audited.returncode == 0, audited.stdout
        actions = "SELECT action || ' ' || target FROM audit WHERE action LIKE '%re%' ORDER BY id"
        trail = [
            line
            for line in tool("postgres", "psql", "-XtAc", actions, **there).stdout.split("\n")
            if line.startswith(("study.retire", "restore.check"))
        ]
        assert trail[:3] == ["study.retire asked", "study.retire searched", "restore.check ledger"]
        assert set(trail[3:]) == {"restore.check ledger"}
        service.stop()


def test_a_file_that_is_no_export_retires_nothing(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "export"
    no_id = '{"release": "x", "study": "s"}'
    no_study = json.dumps({"release": str(UUID(int=1)), "study": "s\0"})
    for content in (
        "",
        "{",
        "[1]",
        '{"study": "s"}',
        no_id,
        no_study,
        "number,release,study,\n",
        "[" * 100_000,
    ):
        with pytest.raises(UnreadableExport):
            read_export(content)
    file.write_text(no_id)
    refused = tool("restore-check", str(file), DITHER_DATABASE_URL=database_url)
    assert refused.returncode == 1
    assert "is no export: entry 1 has no id" in refused.stderr
    assert "Traceback" not in refused.stderr
    file.write_bytes(b"\xff")
    assert "not UTF-8" in tool("restore-check", str(file), DITHER_DATABASE_URL=database_url).stderr
    noted = tool("postgres", "psql", "-XtAc", "SELECT count(*) FROM audit", DITHER_DATABASE_URL=database_url)
    assert noted.stdout.strip() == "0"


def test_exports_put_together_in_any_order_keep_the_most_answers_of_a_session() -> None:
    lines = [
        json.dumps({"session": str(UUID(int=1)), "study": "s", "answers": answers}) for answers in (2, 9, 5)
    ]
    assert dict(read_export("\n".join(lines)).answers) == {UUID(int=1): ("s", 9)}


def test_an_export_that_breaks_off_says_what_to_do() -> None:
    line = json.dumps({"release": str(UUID(int=1)), "study": "s"})
    with pytest.raises(UnreadableExport, match="line 2 is not JSON, and the file breaks off there"):
        read_export(f"{line}\n{line[:-9]}")
    with pytest.raises(UnreadableExport, match=r"line 1 is not JSON$"):
        read_export(f"{line[:-9]}\n{line}\n")


def test_a_page_without_those_that_follow_it_is_told_where_it_ends_with_a_lost_release() -> None:
    def page(numbers: Sequence[int], cursor: str | None) -> Export:
        items = [
            {
                "id": str(UUID(int=n)),
                "study": "s",
                "statistic": "mean",
                "created_at": f"2030-01-{n:02}T00:00:00Z",
            }
            for n in numbers
        ]
        return read_export(json.dumps({"items": items, "next_cursor": cursor}))

    first, second, last = page([9, 8], "a"), page([7, 6], "b"), page([5, 4], None)
    old = page([3, 2], "c")

    def cut(*given: Export, lost: Sequence[int]) -> bool:
        return Export.together(given).is_cut({"s": Lost(releases=[UUID(int=n) for n in lost])})

    assert cut(first, lost=[9, 8])
    assert cut(first, second, lost=[9, 8, 7, 6])
    assert cut(second, first, lost=[9, 8, 7, 6])
    assert not cut(first, lost=[9])  # what follows a release that is known is known, too
    assert not cut(first, second, lost=[9, 8, 7])
    assert not cut(first, second, last, lost=range(4, 10))
    assert not cut(last, lost=[5, 4])
    assert cut(old, first, lost=[9, 8, 3, 2])


def test_a_number_that_no_release_can_have_is_a_usage_error() -> None:
    refused = tool("audit", "export", "--after", str(1 << 63))
    assert refused.returncode == 2
    assert "--after" in refused.stderr
