"""Ten steps of a tenth of each epsilon, beside one answer at all of it and beside ten fresh answers.

Each study has people in several tiers of epsilon, who all have the value in the middle of the range, so that
every error is noise. Three studies of the same people are asked over HTTP: in ten steps of a tenth, once at
all of it, and ten times afresh at a tenth, which was the only way before shares added up. Charges must agree
to the micro-epsilon in every cohort: `run` raises where they do not.

Noise dominates, so that people weigh as much as they offer at any share, and the mean of ten fresh answers
has ten times the variance of one answer. With more people they would not: weights are made for the share that
is asked first. Where there are public people, these weigh more the larger the noise is: the fresh answers are
asked of studies without them.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal

from benchmarks.batches import send
from benchmarks.report import Ratio
from benchmarks.services import Caller, Installation, installation
from benchmarks.studies import definition

STUDIES = 2000
FRESH_STUDIES = 500
QUICK = 10
CONNECTIONS = 4
STEPS = 10
MIDDLE = 60
WIDTH = 120
TIERS = ("0.3", "0.4", "0.5")
PEOPLE = 50
"""In each tier."""

PUBLIC = 60
"""In every other study."""

GOAL = 1.1
FORMER = (9, 11)
QUESTION = {"statistic": "mean", "estimator": "adpm", "allow_worse": True}


@dataclass(frozen=True, slots=True)
class Study:
    """One study's errors, of the last answer or of the mean of fresh ones, and its charges.

    Attributes:
        public: How many people are public in it.
        error: Before the answer is drawn towards the middle [range widths].
        charges: In all [micro-epsilon], by what a cohort offered.
    """

    public: int
    error: float
    charges: Counter[float]


def run(*, quick: bool) -> list[Ratio]:
    """Studies of each kind, each a batch and its questions over HTTP."""
    counts = {"steps": STUDIES, "once": STUDIES, "fresh": FRESH_STUDIES}
    kinds = [(way, number) for way, count in counts.items() for number in range(QUICK if quick else count)]
    found: dict[str, list[Study]] = {way: [] for way in counts}
    with installation() as here:
        here.create(definition(f"{way}-{number}", epsilon_max=Decimal(1)) for way, number in kinds)
        with here.serve(workers=2) as port, ThreadPoolExecutor(CONNECTIONS) as pool:
            for (way, _), study in zip(
                kinds, pool.map(lambda kind: _ask(here, port, *kind), kinds), strict=True
            ):
                found[way].append(study)
    return list(_ratios(found))


def _ask(here: Installation, port: int, way: str, number: int) -> Study:
    slug = f"{way}-{number}"
    public = PUBLIC if way != "fresh" and number % 2 else 0
    rows = [f"{slug}-{tier}-{one},{MIDDLE},{tier},central" for tier in TIERS for one in range(PEOPLE)]
    rows += [f"{slug}-{one},{MIDDLE},,public" for one in range(public)]
    send(port, here, slug, "csv", "\n".join(["subject,value,epsilon,trust", *rows]).encode())
    questions: Mapping[str, list[dict[str, object]]] = {
        "steps": [{"share": step / STEPS} for step in range(1, STEPS + 1)],
        "once": [{"share": 1}],
        "fresh": [{"share": 1 / STEPS, "fresh": True}] * STEPS,
    }
    with Caller(port) as caller:
        answers = [
            caller.call("POST", f"/v1/studies/{slug}/releases", here.analyse, {**QUESTION, **question})
            for question in questions[way]
        ]
        page = caller.call("GET", f"/v1/studies/{slug}/releases?limit=100", here.admin)
    errors = [
        (answer["estimate"] - MIDDLE) / WIDTH / answer["parameters"].get("shrinkage", 1) for answer in answers
    ]
    charges: Counter[float] = Counter()
    for release in page["items"]:
        for charge in release["charges"]:
            charges[charge["offered"]] += round(charge["epsilon"] * 10**6)
    return Study(public, math.fsum(errors) / STEPS if way == "fresh" else errors[-1], charges)


def _ratios(found: Mapping[str, Sequence[Study]]) -> Iterator[Ratio]:
    steps, once = found["steps"], found["once"]
    paid: dict[int, set[tuple[tuple[float, int], ...]]] = {}
    for study in (*steps, *once):
        paid.setdefault(study.public, set()).add(tuple(sorted(study.charges.items())))
    if any(len(charges) != 1 for charges in paid.values()):
        raise RuntimeError(f"ten steps and one answer do not charge the same: {paid}")
    said = "; ".join(
        f"{public} public: " + ", ".join(f"{amount} of {offered:g}" for offered, amount in charges)
        for public, (charges,) in paid.items()
    )
    yield Ratio(
        section="refine",
        name="charge of ten steps beside one answer",
        unit="micro",
        subject=[sum(study.charges.total() for study in steps)],
        baseline=[sum(study.charges.total() for study in once)],
        goal=1,
        better="lower",
        note=f"refine: {len(steps)} studies each way, {PEOPLE} people in each tier; charged in all in every "
        f"one of them (micro-epsilon, by the epsilon offered): {said}",
    )
    yield variances("variance of ten steps beside one answer", steps, once, GOAL)
    alone = [study for study in once if not study.public]
    fresh = variances("variance of the mean of ten fresh answers", found["fresh"], alone, None)
    yield fresh
    low, high = FORMER
    if fresh.interval and not (fresh.interval[0] < high and fresh.interval[1] > low):
        raise RuntimeError(f"the control is off: {fresh.interval}, expected {low} to {high} times")


def variances(name: str, subject: Sequence[Study], baseline: Sequence[Study], goal: float | None) -> Ratio:
    """The ratio of two mean squares about the truth."""
    return Ratio.of_mean_squares(
        [study.error for study in subject],
        [study.error for study in baseline],
        section="refine",
        name=name,
        goal=goal,
    )
