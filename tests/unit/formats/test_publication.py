"""A published file against whoever changes it, without the service."""

import base64
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from app.core.merkle import covering, grown, over, path
from app.formats.publication import (
    FORMAT,
    Fault,
    NoPublication,
    PublicKey,
    SigningKey,
    commitment_of,
    leaf_of,
    log_name,
    read_keys,
    verify,
)

KEY = SigningKey(bytes(range(32)))
OTHER = SigningKey(bytes(32))
TREE = b"secret of the tree"
ANSWERS = [
    {"id": f"r{number}", "estimate": 40.5 + number, "interval": {"lower": 39.0, "upper": 42.0}}
    for number in range(7)
]
LINKS = [bytes([number]) * 32 for number in range(7)]


def document(*numbers: int) -> dict[str, Any]:
    """What is signed when these releases, from 1 on, are published."""
    commitments = [commitment_of(TREE, link) for link in LINKS]
    leaves = [
        leaf_of(number, answer, commitment)
        for number, (answer, commitment) in enumerate(zip(ANSWERS, commitments, strict=True), start=1)
    ]
    nodes = dict(grown(0, [], leaves))
    root = over(covering(0, len(leaves)), nodes)
    return {
        "format": FORMAT,
        "title": "Lunch",
        "study": {"slug": "lunch", "title": "Lunch?"},
        "expires_at": None,
        "label": {"unit": "person", "epsilon": {"spent": 0.5, "at_most": 4.0}},
        "answers": [
            {
                "number": number,
                "commitment": commitments[number - 1].hex(),
                "proof": [
                    base64.b64encode(over(part, nodes)).decode() for part in path(number - 1, len(leaves))
                ],
                "answer": ANSWERS[number - 1],
            }
            for number in numbers
        ],
        "checkpoint": KEY.checkpoint(log_name(TREE), len(leaves), root),
    }


def published(*numbers: int) -> dict[str, Any]:
    """The file."""
    return dict(json.loads(KEY.sealed(document(*numbers))))


def fault(file: object) -> Fault | None:
    """Why a file does not hold."""
    return verify(json.dumps(file).encode(), [OTHER.public, KEY.public]).fault


def test_a_published_file_holds_and_says_where_it_is():
    verdict = verify(KEY.sealed(document(2, 7)), [KEY.public])
    assert (verdict.fault, verdict.answers, verdict.size) == (None, 2, 7)
    assert verdict.log == log_name(TREE)


def _swap(file: dict[str, Any]) -> None:
    file["answers"].reverse()


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "the estimate's last digit": lambda file: file["answers"][0]["answer"].update(estimate=41.6),
    "an end of an interval": lambda file: file["answers"][1]["answer"]["interval"].update(upper=42.5),
    "the title": lambda file: file.update(title="Dinner"),
    "what the study asked": lambda file: file["study"].update(title="Dinner?"),
    "the epsilon on the label": lambda file: file["label"]["epsilon"].update(spent=0.1),
    "the unit on the label": lambda file: file["label"].update(unit="answer"),
    "an answer left out": lambda file: file["answers"].pop(),
    "an answer twice": lambda file: file["answers"].append(copy.deepcopy(file["answers"][0])),
    "the order of answers": _swap,
    "its place in the chain": lambda file: file["answers"][0].update(number=3),
    "the link it is bound to": lambda file: file["answers"][0].update(commitment="00" * 32),
    "a proof": lambda file: file["answers"][0]["proof"].reverse(),
    "the size of the tree": lambda file: file.update(checkpoint=file["checkpoint"].replace("\n7\n", "\n8\n")),
    "the name of the tree": lambda file: file.update(
        checkpoint=file["checkpoint"].replace("dither/", "other/")
    ),
    "an expiry": lambda file: file.update(expires_at="2030-01-01T00:00:00+00:00"),
    "a field more": lambda file: file.update(note="certified"),
    "a field less": lambda file: file.pop("label"),
    "an integer for a float": lambda file: file["label"]["epsilon"].update(at_most=4),
    "the signature": lambda file: file.update(signature=file["signature"][:-6] + "AAAA=="),
    "no signature": lambda file: file.pop("signature"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_is_found(change):
    file = published(2, 7)
    assert fault(file) is None
    change(file)
    assert fault(file) is not None


def test_a_file_that_another_key_signed_is_not_of_this_service():
    file = document(1)
    assert verify(OTHER.sealed(file), [KEY.public]).fault is Fault.OTHER_KEY
    assert verify(OTHER.sealed(file), [OTHER.public]).fault is Fault.CHECKPOINT


@pytest.mark.parametrize(
    "forge",
    [
        lambda file: file["answers"][0]["answer"].update(estimate=99.0),
        lambda file: file["answers"][0].update(number=2),
        lambda file: file["answers"][0].update(commitment=commitment_of(TREE, LINKS[3]).hex()),
        lambda file: file["answers"][0]["proof"].pop(),
    ],
)
def test_what_the_key_signs_and_the_tree_does_not_hold_is_found(forge):
    file = document(1)
    forge(file)
    assert verify(KEY.sealed(file), [KEY.public]).fault is Fault.NOT_IN_TREE


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        b"{}",
        b'{"format": "another"}',
        b'{"format": "dither-publication-1", "format": 1}',
        b"\xff",
    ],
)
def test_what_has_another_form_is_no_publication(text):
    with pytest.raises(NoPublication):
        verify(text, [KEY.public])


def test_keys_are_read_as_they_are_given_and_nothing_else_is():
    text = json.dumps({"keys": [{"key": KEY.public.text, "since": None, "current": True}]})
    assert read_keys(text.encode()) == [KEY.public]
    name, identity, key = KEY.public.text.split("+", 2)
    for wrong in (f"{name}+00000000+{key}", f"other+{identity}+{key}", f"{name}+{identity}+AAAA", "x", ""):
        with pytest.raises(NoPublication):
            read_keys(json.dumps({"keys": [{"key": wrong}]}).encode())
        with pytest.raises(ValueError):  # noqa: PT011 - of base64, too
            PublicKey.of(wrong)
    for empty in (b"{}", b'{"keys": []}', b"[]", b"x"):
        with pytest.raises(NoPublication):
            read_keys(empty)


def test_the_digest_of_a_link_depends_on_the_key_of_the_tree():
    assert commitment_of(TREE, LINKS[0]) != commitment_of(b"another", LINKS[0])
    assert LINKS[0] not in commitment_of(TREE, LINKS[0])
    assert repr(KEY) == f"SigningKey({KEY.public.id.hex()})"
