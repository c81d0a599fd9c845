"""An answer as it is written down, and the ends of its intervals that are kept beside it."""

import json

import pytest

from app.services.statistics.kept_ends import written

INTERVAL = {"lower": 1.5, "upper": 2.0, "level": 0.95, "others": ((1.6, 1.9), (1.55, 1.95), (1.0, 3.0))}
SHOWN = {"lower": 1.5, "upper": 2.0, "level": 0.95}


def test_what_is_listed_is_written_as_the_whole_would_be() -> None:
    within = {"name": "ä", "interval": INTERVAL, "bins": ({"share": 1e-7, "interval": INTERVAL},)}
    document = {
        "estimate": None,
        "interval": INTERVAL,
        "groups": [within, within],
        "empty": [],
        "three": (1, 2, 3),
    }
    shown = {"name": "ä", "interval": SHOWN, "bins": [{"share": 1e-7, "interval": SHOWN}]}
    expected = {**document, "interval": SHOWN, "groups": [shown, shown]}
    body, kept = written(document)
    assert body == json.dumps(expected, separators=(",", ":")).encode()
    assert kept is not None
    ends = [[list(one)] * 5 for one in INTERVAL["others"]]  # type: ignore[attr-defined]  # pairs
    assert (
        kept
        == json.dumps(dict(zip(("0.8", "0.9", "0.99"), ends, strict=True)), separators=(",", ":")).encode()
    )


def test_an_answer_without_intervals_keeps_nothing() -> None:
    assert written({"groups": [{"count": 3}]}) == (b'{"groups":[{"count":3}]}', None)


@pytest.mark.parametrize("document", [{"estimate": float("nan")}, {"groups": [float("inf")]}])
def test_what_is_no_number_is_not_written(document: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        written(document)
