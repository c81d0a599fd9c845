"""Strict JSON: what Python's parser takes and this one refuses, and that nothing else changes."""

import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import MalformedDocument
from app.core.numbers import JsonNumber
from app.formats.strict_json import (
    MAX_DEPTH,
    MAX_KEYS,
    DuplicateKey,
    decode_element,
    decode_foreign,
    decode_json,
    decode_utf8,
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


def loosened(value: object) -> object:
    """The value as Python's own parser gives it."""
    if isinstance(value, JsonNumber):
        return json.loads(value)
    if isinstance(value, dict):
        return {name: loosened(item) for name, item in value.items()}
    if isinstance(value, list):
        return [loosened(item) for item in value]
    return value


@given(VALUES)
def test_good_documents_are_read_like_pythons_parser_reads_them(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2)):
        assert loosened(decode_json(text)) == json.loads(text)


@given(st.floats(allow_nan=False) | st.integers())
def test_numbers_keep_their_text(number: float) -> None:
    text = json.dumps(number)
    value = decode_json(text)
    assert type(value) is JsonNumber
    assert value == text


def test_strings_are_told_from_numbers() -> None:
    decoded = decode_json('[1, "1"]')
    assert isinstance(decoded, list)
    assert [type(item) for item in decoded] == [JsonNumber, str]


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_literals_that_are_no_numbers_are_kept_for_the_field_to_refuse(literal: str) -> None:
    value = decode_json(literal)
    assert type(value) is JsonNumber
    assert not math.isfinite(float(value))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "[1,]",
        '{"a":1,}',
        "{'a':1}",
        "{a:1}",
        "01",
        "+1",
        ".5",
        "5.",
        "0x1",
        "1_000",
        "nan",
        "True",
        "[1] 2",
        "\ufeff1",
        '"\n"',
        '"\\x41"',
        '"',
        "//\n1",
    ],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(MalformedDocument):
        decode_json(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"a":1,"a":1}', "a"),
        ('{"a":1,"b":2,"\\u0061":3}', "a"),
        ('[{"x":{"b":1,"b":2}}]', "b"),
        ('{"":1,"":2}', ""),
    ],
)
def test_a_field_given_twice_is_named(text: str, name: str) -> None:
    with pytest.raises(DuplicateKey) as caught:
        decode_json(text)
    assert [error.field for error in caught.value.fields] == [name]


def test_the_name_of_a_field_given_twice_is_cut() -> None:
    name = "x" * 10_000
    with pytest.raises(DuplicateKey) as caught:
        decode_json(f'{{"{name}":1,"{name}":2}}')
    assert len(caught.value.fields[0].field) == 64


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1, 1_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_has_a_limit(opening: str, closing: str, depth: int) -> None:
    inner = "" if opening == "[" else "1"
    text = opening * depth + inner + closing * depth
    if depth <= MAX_DEPTH - (opening != "["):
        decode_json(text)
    elif depth > MAX_DEPTH:
        with pytest.raises(MalformedDocument, match="nested too deeply"):
            decode_json(text)


def test_many_shallow_lists_are_no_deep_one() -> None:
    assert len(decode_json("[" + ",".join(["[[]]"] * 1000) + "]")) == 1000  # type: ignore[arg-type]  # a list


@pytest.mark.parametrize(
    "text", ['"\\ud800"', '"\\udfff"', '["a", {"b": "\\ud800x"}]', '{"\\ud800": 1}', '"\\ude00\\ud83d"']
)
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(MalformedDocument, match="surrogate"):
        decode_json(text)


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert decode_json('"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


@given(st.lists(VALUES, min_size=1))
def test_elements_are_read_one_by_one(values: list[object]) -> None:
    text = " ".join(json.dumps(value) for value in values) + " "
    place, read = 0, []
    while place < len(text):
        value, place = decode_element(text, place)
        read.append(loosened(value))
        place += 1
    assert read == [json.loads(json.dumps(value)) for value in values]


def test_an_element_that_breaks_off_is_told_from_one_that_is_wrong() -> None:
    with pytest.raises(json.JSONDecodeError):
        decode_element('{"a": 1', 0)
    with pytest.raises(json.JSONDecodeError):
        decode_element('{"b": {"a": 1, "a": 2}', 0)
    with pytest.raises(MalformedDocument):
        decode_element("[" * 100_000, 0)
    with pytest.raises(MalformedDocument):
        decode_element('["\\ud800"]', 0)


@pytest.mark.parametrize("beside", ["9" * 5_000, "-" + "9" * 5_000, "1." + "9" * 5_000, "NaN", '"\\ud800"'])
def test_a_refused_element_ends_where_it_ends(beside: str) -> None:
    text = f'[{{"a": 1, "a": {beside}}}, 7]'
    refusal, end = decode_element(text, 1)
    assert isinstance(refusal, DuplicateKey)
    assert text[end:] == ", 7]"


def test_nesting_has_a_limit_beside_a_duplicate_key() -> None:
    with pytest.raises(MalformedDocument, match="nested too deeply"):
        decode_element('[{"a": 1, "a": 2},' + "[" * 100_000, 0)


def test_an_object_has_a_limited_number_of_fields() -> None:
    fields = [f'"{number}": 1' for number in range(MAX_KEYS)]
    decode_json(f"{{{','.join(fields)}}}")
    for another in ('"x": 1', '"0": 1'):
        text = f"{{{','.join([*fields, another])}}}"
        with pytest.raises(MalformedDocument, match="1000 fields"):
            decode_json(text)
        with pytest.raises(MalformedDocument, match="1000 fields"):
            decode_element(text, 0)


@pytest.mark.parametrize("data", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xff\xfe1\x00"])
def test_only_utf8_is_text(data: bytes) -> None:
    with pytest.raises(MalformedDocument):
        decode_utf8(data)


@given(st.binary())
def test_no_bytes_are_a_fault(data: bytes) -> None:
    with contextlib.suppress(MalformedDocument, DuplicateKey):
        decode_json(decode_utf8(data))


FOREIGN: dict[str, bytes] = {
    "nothing": b"",
    "no object": b"[]",
    "two objects": b"{} {}",
    "nested brackets": b"[" * 30_000,
    "closed nested brackets": b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "nested objects": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "a number of 400 digits": b'{"a": 1' + b"0" * 400 + b"}",
    "a number of 30,000 digits": b'{"a": ' + b"9" * 30_000 + b"}",
    "2^63": b'{"a": 9223372036854775808}',
    "an infinite float": b'{"a": 1e400}',
    "Infinity": b'{"a": -Infinity}',
    "NaN": b'{"a": NaN}',
    "half a surrogate pair": b'{"a": "\\ud800"}',
    "half a surrogate pair in a name": b'{"\\udfff": 1}',
    "a surrogate as bytes": b'{"a": "\xed\xa0\x80"}',
    "Latin-1": b'{"a": "\xe9"}',
    "a field twice": b'{"a": 1, "a": 2}',
    "many fields": json.dumps({str(number): 0 for number in range(MAX_KEYS + 1)}).encode(),
    "too long": b'{"a": "' + b"x" * 50_000 + b'"}',
}
"""What a stranger may write where a document is expected."""


@pytest.mark.parametrize("name", FOREIGN)
def test_what_a_stranger_wrote_is_refused_in_words(name: str) -> None:
    with pytest.raises(MalformedDocument) as refused:
        decode_foreign(FOREIGN[name], 50_000)
    assert refused.value.detail


@given(st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_stranger_writes_is_an_object_of_small_numbers_or_refused(data: bytes) -> None:
    with contextlib.suppress(MalformedDocument):
        rest: list[object] = [decode_foreign(data, 50_000)]
        for value in rest:
            assert not isinstance(value, float) or math.isfinite(value)
            assert not isinstance(value, int) or -(2**63) <= value < 2**63
            assert not isinstance(value, str) or value.encode().decode() == value
            rest += value.values() if isinstance(value, dict) else value if isinstance(value, list) else []


def test_a_good_document_of_a_stranger_has_pythons_numbers() -> None:
    text = b'{"exp": 1900000000, "share": 1.5, "least": -9223372036854775808, "name": "\\ud83d\\ude00"}'
    assert decode_foreign(text, 1_000) == json.loads(text)
