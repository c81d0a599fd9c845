"""The off-grid test: which low bits an answer has tells nothing about the data.

Float noise added to a float mean gives itself away: 1 + noise has other low bits than 0 + noise
(Mironov, CCS 2012, doi:10.1145/2382196.2382264). Here two neighboring studies, one person with the value 0
and one with the value 1, are asked many times over HTTP, at a noise as large as the range.

An answer is lower + width * j / (10^6 * 2^30) for an integer j (one person weighs 10^6 micro-epsilon, the
data's grid has 2^30 steps), rounded once to a double, and every j is possible whatever the data. So

1. every answer lies on that grid, and
2. among answers in [2^-(m+1), 2^-m), where doubles are 2^-(53+m) apart, the share that is off the coarser
   grid of 2^-53 is known: an answer is at i / 15625 of a step of that grid (10^6 * 2^30 = 15625 * 2^36), i
   uniform, as the noise is 10^15 times as wide as a period of i; so it is rounded to a whole step with the
   probability (1 + 2 floor(15625 / 2^(m+1))) / 15625, about 2^-m, whatever the data.

Where noise makes an answer fall is no secret, and depends on the data by a factor of e at most; that is why
shares are compared for answers of the same size. The second test has a false-alarm rate of ALPHA for each
of the two studies. With float noise it fails for the value 1: all of those answers are whole steps, which
has a probability below 2^-20 for 20 answers or more (27 are expected of 250).
"""

import json
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from tests.conftest import LiveServer
from tests.support.live import LiveService
from tests.system.load import Crowd, Reply, at_once, make_study

pytestmark = [pytest.mark.system, pytest.mark.statistical]

ALPHA = 1e-6
"""More than elsewhere: with 250 answers float noise shows at a level of 2^-20, and each costs a request."""

ANSWERS = 250
"""To each study; each costs an epsilon of 1."""

GRID = 10**6 * 2**30
OCTAVES = (1, 2, 3)


def off_grid(answers: Sequence[float]) -> float:
    """The share of answers inside the range that are no double next to a point of the answer grid."""
    inside = [answer for answer in answers if 0 < answer < 1]
    off = sum(float(Fraction(round(Fraction(answer) * GRID), GRID)) != answer for answer in inside)
    return off / len(inside)


def whole_step_probability(octave: int) -> Fraction:
    return Fraction(1 + 2 * (15625 // 2 ** (octave + 1)), 15625)


def off_share_p_value(answers: Sequence[float]) -> float:
    """Two-sided: the number of answers off the grid of 2^-53, given the octaves that they are in.

    Twice the smaller tail of the exact law of a sum of independent Bernoulli draws.
    """
    law = np.ones(1)
    off = 0
    for octave in OCTAVES:
        inside = [answer for answer in answers if 2.0 ** -(octave + 1) <= answer < 2.0**-octave]
        off += sum(not (answer * 2.0**53).is_integer() for answer in inside)
        whole = float(whole_step_probability(octave))
        for _ in inside:
            law = np.convolve(law, [whole, 1 - whole])
    return float(min(1.0, 2 * min(law[: off + 1].sum(), law[off:].sum())))


def neighbors(service: LiveService) -> dict[float, str]:
    """Two studies of one person each, who differ in that person's value."""
    studies = {0.0: "nothing", 1.0: "everything"}
    with service.client(service.create_token("contribute")) as contributor:
        for value, slug in studies.items():
            make_study(service, slug, lower=0, upper=1, epsilon={"min": 1, "max": ANSWERS})
            record = {"subject": slug, "value": value, "epsilon": ANSWERS, "trust": "central"}
            stored = contributor.post(f"/v1/studies/{slug}/contributions", json=record)
            assert stored.status_code == 201, stored.text
    return studies


async def ask(service: LiveService, slug: str) -> list[float]:
    """Every answer that a study's epsilon pays for, at an epsilon of 1 each."""
    question = {
        "statistic": "mean",
        "estimator": "uniform",
        "share": 1 / ANSWERS,
        "fresh": True,
        "allow_worse": True,
    }
    async with Crowd(service, service.create_token("analyse")) as crowd:

        async def release(turn: int) -> Reply:
            return await crowd.post(f"/v1/studies/{slug}/releases", question, turn=turn)

        replies = await at_once(range(ANSWERS), release, clients=8)
    assert {reply.status for reply in replies} == {201}
    documents = [json.loads(reply.body) for reply in replies]
    assert {document["epsilon_max"] for document in documents} == {1.0}
    return [document["estimate"] for document in documents]


async def test_the_low_bits_of_answers_do_not_depend_on_the_data(live_server: LiveServer) -> None:
    service = live_server(env={"DITHER_LIFETIME_EPSILON": str(ANSWERS)})
    for value, slug in neighbors(service).items():
        answers = await ask(service, slug)
        assert off_grid(answers) == 0, value
        assert off_share_p_value(answers) >= ALPHA, value


def test_float_noise_on_a_float_mean_is_caught() -> None:
    """The control: the same number of answers as a service with floats would give them."""
    noise = np.random.default_rng(20120101)
    shares = {}
    for value in (0.0, 1.0):
        answers = [min(max(value + float(z), 0.0), 1.0) for z in noise.laplace(scale=1.0, size=ANSWERS)]
        shares[value] = off_share_p_value(answers)
        assert off_grid(answers) > 0.5
    assert shares[1.0] < ALPHA
    assert shares[0.0] > ALPHA, "the two differ: it depends on the data"


def test_the_share_of_whole_steps_is_what_counting_says() -> None:
    for octave in OCTAVES:
        start = Fraction(1, 2 ** (octave + 1))
        positions = (float(start + Fraction(i, 15625 * 2**53)) for i in range(15625))
        whole = sum((position * 2.0**53).is_integer() for position in positions)
        assert Fraction(whole, 15625) == whole_step_probability(octave)
