"""CSV over HTTP, as people have it: read as the SDK reads it, or refused with a place and a remedy."""

from typing import Any

import pytest

from tests.api.service import Service, assert_problem
from tests.support.real_files import FILES, PEOPLE

REFUSED = {
    "open_quote.csv": ("row 2 (line 3), column value", "close it"),
    "missing_column.csv": ("no field: name", "must name fields out of", "subject"),
    "empty.csv": ("no header line", "must name fields out of", "subject"),
}
"""What a refusal of one of the files says."""


async def send(service: Service, study: str, content: bytes, query: str = "trust=central") -> Any:
    return await service.call(
        "POST",
        f"/v1/studies/{study}/contributions/batch?{query}",
        "contribute",
        content=content,
        headers={"Content-Type": "text/csv"},
    )


async def assert_held(service: Service, study: str, subject: str, value: float, epsilon: float) -> None:
    """Another value would be 409, a person who is not there 201."""
    body = {"subject": subject, "value": value, "epsilon": epsilon, "trust": "central"}
    again = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=body)
    assert again.status_code == 200, again.text


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith((".csv", ".tsv"))])
async def test_a_file_as_people_have_it_is_stored_or_refused_with_row_column_and_remedy(
    service: Service, study: str, name: str
) -> None:
    make, refusal = FILES[name]
    before = await service.rows()
    response = await send(service, study, make())
    if refusal:
        assert_problem(response, "malformed_document", 400)
        assert all(part in response.json()["detail"] for part in REFUSED[name]), response.text
        assert await service.rows() == before
        return
    assert response.json()["created"] == len(PEOPLE), response.text
    # The same values, as a single request has them: nothing was read as something else.
    for subject, value, epsilon in PEOPLE:
        await assert_held(service, study, subject, value, float(epsilon))


@pytest.mark.parametrize(
    ("row", "field", "said"),
    [
        ("a;1,234;1", "value", "say which, with ?decimals="),
        ("a;12,5,1;1", "value", "without commas: a point stands before decimals"),
        ("a;1;2;3", "row", "must have as many cells as the header line: 3, not 4"),
        ("a;1", "row", "must have as many cells as the header line: 3, not 2"),
        ("a", "row", "must have as many cells as the header line: 3, not 1"),
        ("a;;1", "value", "missing"),
        ("a;1000,5;1", "value", "range"),
    ],
)
async def test_a_row_that_is_refused_has_its_field_and_reason(
    service: Service, study: str, row: str, field: str, said: str
) -> None:
    content = f"subject;value;epsilon\nfine;12,5;0,5\n{row}\n".encode()
    document = (await send(service, study, content)).json()
    assert [result["status"] for result in document["results"]] == ["created", "refused"]
    [error] = document["results"][1]["errors"]
    assert error["field"] == field
    assert said in error["reason"]


async def test_rows_of_separators_are_none(service: Service, study: str) -> None:
    response = await send(
        service, study, b",,\nsubject,value,epsilon\nada,34,0.5\n,,\n , ,\n,,,,\nbob,1,1\n,,"
    )
    assert [result["status"] for result in response.json()["results"]] == ["created"] * 2


async def test_a_comma_means_what_the_request_says(service: Service, study: str) -> None:
    content = b"subject;value;epsilon\na;1,234;1\n"
    assert (await send(service, study, content, "trust=central&decimals=,")).json()["created"] == 1
    await assert_held(service, study, "a", 1.234, 1)
    refused = (await send(service, study, content, "trust=central&decimals=.")).json()
    assert refused["results"][0]["errors"][0]["field"] == "value"
    assert_problem(await send(service, study, content, "decimals=x"), "invalid_request", 422)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("subject,value\nada,1\nzoë,1\n".encode("latin-1"), "not UTF-8 in line 3"),
        ("subject,value\nada,1\n".encode("utf-16") + b"\0", "not UTF-16"),
        (b"subject,value,Value\na,1,2\n", "a column twice"),
        (b"value,epsilon\n1,2\n", "no column subject"),
        (b"subject,value,note\na,1,2\n", "no field: note"),
        (b'subject,value\na,"3"4"\n', "row 1 (line 2), column value"),
        (b"subject,value\na,1\n" + b"x" * 70_000 + b",1\n", "row 2 (line 3), column subject"),
    ],
)
async def test_a_document_that_cannot_be_read_says_where(
    service: Service, study: str, content: bytes, said: str
) -> None:
    response = await send(service, study, content)
    assert_problem(response, "malformed_document", 400)
    assert said in response.json()["detail"]


@pytest.mark.parametrize(
    ("content", "query", "values"),
    [
        ("subject;value\na;12,5\nb;1.234\n", "", [12.5, None]),
        ("subject;value\nb;1.234\na;12,5\n", "", [None, 12.5]),
        ("subject;value\na;1.234\n", "", [None]),
        ("subject;value\na;1.234\nb;2\n", "&decimals=,", [1234, 2]),
        ("subject;value\na;1.234\n", "&decimals=.", [1.234]),
        ("subject;value\na;1.234\nb;12.5\n", "", [1.234, 12.5]),
        ("subject,value\na,1.234\n", "", [1.234]),
        ('subject,value\na,"1,234"\n', "&decimals=.", [1234]),
        ("subject;value\na;1.234,56\nb;.5\nc;+5\nd;5.\n", "", [1234.56, 0.5, 5, 5]),
    ],
)
async def test_a_point_that_may_stand_between_thousands_is_never_taken_for_decimals(
    service: Service, content: str, query: str, values: list[float | None]
) -> None:
    study = await service.study(upper=5000)
    document = (await send(service, study, content.encode(), f"trust=central&epsilon=1{query}")).json()
    rows = content.splitlines()[1:]
    for row, result, value in zip(rows, document["results"], values, strict=True):
        if value is None:
            assert "may have a point before decimals, or one between thousands" in str(result), row
            continue
        assert result["status"] == "created", (row, result)
        await assert_held(service, study, row[0], value, 1)


async def test_a_decimal_comma_far_behind_a_point_that_was_believed_refuses_the_document(
    service: Service,
) -> None:
    study = await service.study(upper=5000)
    rows = "".join(f"s{number},7\n" for number in range(100_000))
    refused = await send(service, study, f'subject,value\na,1.234\n{rows}b,"2,5"\n'.encode(), "trust=central")
    assert_problem(refused, "malformed_document", 400)
    assert "decimal comma behind others such as 1.234" in refused.json()["detail"]


@pytest.mark.parametrize("subject", ["7.0", "1.2E+11", "zoe\u0308"])
async def test_ids_that_a_table_has_rewritten_are_refused(service: Service, study: str, subject: str) -> None:
    content = f"subject,value,epsilon\n{subject},1,1\nada,1,1\n".encode()
    results = (await send(service, study, content)).json()["results"]
    assert [result["status"] for result in results] == ["refused", "created"]
    assert results[0]["errors"][0]["field"] == "subject"


async def test_a_row_names_all_that_is_wrong_with_it_as_a_document_does(service: Service, study: str) -> None:
    content = "subject,value,epsilon\nzoe\u0308,1000,99\n".encode()
    [refused] = (await send(service, study, content)).json()["results"]
    assert [error["field"] for error in refused["errors"]] == ["subject", "epsilon", "value"]


async def test_columns_of_measures_and_cells_of_vectors_are_read_as_those_of_a_value(
    service: Service,
) -> None:
    measures = {"pay": {"lower": 0, "upper": 5000}, "place": {"lower": 0, "upper": 5000, "dimension": 2}}
    study = await service.study(lower=None, upper=None, measures=measures)
    content = b'subject;pay;place;epsilon\na;12,5;"7,5;8";1\nb;1.234;"1;2";1\nc;1;"1.234;2";1\n'
    refused = (await send(service, study, content)).json()["results"]
    assert [result["status"] for result in refused] == ["created", "refused", "refused"]
    assert [result["errors"][0]["field"] for result in refused[1:]] == ["values.pay", "values.place"]
    assert (await send(service, study, content, "trust=central&decimals=,")).json()["created"] == 2
    body = {"subject": "c", "values": {"pay": 1, "place": [1234, 2]}, "epsilon": 1, "trust": "central"}
    again = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=body)
    assert again.status_code == 200, again.text


async def test_words_for_none_are_missing_cells_but_no_labels_and_no_ids(service: Service):
    study = await service.study(attributes={"site": ["n/a", "north"]}, trust=["central"])
    content = b"subject,value,epsilon,site\nn/a,1,K. A.,n/a\nb,-,1,north\nc,2,1,k. a.\n"
    done = (await send(service, study, content, "epsilon=1&trust=central&missing=n/a, k. A. ,-")).json()
    assert [one["status"] for one in done["results"]] == ["created", "refused", "refused"], done
    assert [one["errors"][0]["field"] for one in done["results"][1:]] == ["value", "attributes.site"]
    assert [one["errors"][0]["reason"] for one in done["results"][1:]] == ["missing", "missing"]
    # Without them the words are what is written.
    done = (await send(service, study, content, "epsilon=1&trust=central")).json()
    assert "missing" not in str(done["results"][1:])
    assert_problem(await send(service, study, content, f"missing={300 * 'x'}"), "invalid_request", 422)
