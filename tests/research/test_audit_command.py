"""`dither audit privacy`."""

import json

import pytest


@pytest.mark.slow
def test_the_command_prints_claims_and_catches_every_control(dither):
    done = dither("audit", "privacy", "--draws", "10000", "--json")
    report = json.loads(done.output)
    assert done.status == 0
    assert report["as_expected"]
    planted = [result for result in report["results"] if result["planted"]]
    assert planted
    assert all(result["caught"] for result in planted)


def test_too_few_draws_to_catch_anything_are_not_understood(dither):
    assert dither("audit", "privacy", "--draws", "10").status == 2
