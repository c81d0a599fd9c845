"""What an analyst sees of a release of a mean, by what was asked. Free: it is all published."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from app.core.attributes import conditions_of, label_of
from app.core.study import StudyDefinition
from app.estimators import confidence
from app.estimators.interface import Coverage, Interval, NotApplicable
from app.estimators.together import ErrorBound, KnownError, together
from app.services.statistics import planned_errors
from app.services.statistics.label_weights import LabelWeights
from app.services.statistics.questions import MEAN, SUM
from app.services.statistics.reading import DIFFERENCE, Reading

Document = dict[str, Any]

_NO_VARIANCE = "This release says nothing of the variance. A new one does, of central people."

_TOGETHER = "together"

_NUMBERS = ("estimate", "standard_error", "predicted_error", "interval", "population_interval")


def read_off(body: bytes, reading: Reading, study: StudyDefinition) -> bytes:
    """A release of a mean as the answer to what was asked.

    Raises:
        NotApplicable: it says nothing of the variance, or has no answer for a label that is needed.
    """
    if reading.statistic == MEAN and not reading.simultaneous and not reading.shares:
        return body
    document, study = json.loads(body), study.of_measure(reading.ask.measure)
    if "groups" in document:
        groups = document["groups"]
        if reading.simultaneous:
            ends = _ends(document, study)
            groups = [group | {"simultaneous": _simultaneous(group, len(groups), ends)} for group in groups]
        document["groups"] = [_of_group(group, reading.statistic) for group in groups]
    if reading.statistic != MEAN or reading.label_weights:
        document.pop("error", None)
    if reading.label_weights or reading.statistic not in (MEAN, SUM):
        # A variance has no such interval, and what is read off labels has one of its own.
        document.pop("anytime", None)
    if reading.label_weights:
        document |= _weighted(document, reading, reading.label_weights, study)
    elif reading.statistic != MEAN:
        if reading.statistic != SUM and reading.statistic not in document:
            raise NotApplicable(_NO_VARIANCE)
        document |= _of_statistic(document, reading.statistic)
    return json.dumps(document | {"statistic": reading.statistic}, separators=(",", ":")).encode()


def of_coordinates(document: Document, statistic: str) -> Document:
    """A release of the mean of values of several coordinates as the answer to what was asked.

    Raises:
        NotApplicable: it says nothing of the variance.
    """
    if statistic == MEAN:
        return document
    shown = document | {"coordinates": _coordinates(document, statistic)}
    if shown["coordinates"] is None:
        raise NotApplicable(_NO_VARIANCE)
    # Coordinates have one plan.
    error = document["predicted_error"] * document["people"] if statistic == SUM else None
    shown["predicted_error"] = shown["coordinates"][0].get("predicted_error", error)
    if "groups" in document:
        groups = document["groups"]
        shown["groups"] = [group | {"coordinates": _coordinates(group, statistic)} for group in groups]
    return shown


def _coordinates(answer: Document, statistic: str) -> list[Document] | None:
    """The coordinates of a mean or of one of its labels, as those of a statistic; None of nothing known."""
    read, people = answer["coordinates"], {"people": answer.get("people")}
    if read is None or (statistic != SUM and statistic not in read[0]):
        return None
    return [{"coordinate": one["coordinate"], **_of_statistic(one | people, statistic)} for one in read]


def _of_statistic(document: Document, statistic: str) -> Document:
    """The numbers of a mean, or of one of its labels, as those of a statistic."""
    if document["estimate"] is None:
        return {}
    if statistic != SUM:
        # Releases did not always say this of them.
        return {"predicted_error": None, **document[statistic]}
    people = document["people"]
    numbers = ("estimate", "standard_error", "predicted_error")
    shown: Document = {name: document[name] * people for name in numbers if name in document}
    for name in ("interval", "population_interval", "simultaneous", "anytime"):
        if (interval := document.get(name)) is not None:
            shown[name] = interval | {end: interval[end] * people for end in ("lower", "upper")}
    return shown


def _of_group(group: Document, statistic: str) -> Document:
    """The same for a label, which says nothing of the variance where it has no central people."""
    if statistic in (MEAN, DIFFERENCE):
        return group
    about_means = ("error", "predicted_bias", "drawn_to_whole", "anytime", _TOGETHER)
    shown = {name: value for name, value in group.items() if name not in about_means}
    if statistic == SUM or statistic in group:
        return shown | _of_statistic(group, statistic)
    return shown | dict.fromkeys(_NUMBERS)


def _interval(
    center: float,
    half_width: float,
    coverage: Coverage,
    ends: tuple[float, float],
    estimate: float,
) -> Mapping[str, object]:
    """An interval, its center and its ends clipped to where the truth can lie, extended to the estimate."""
    center = min(max(center, ends[0]), ends[1])
    lower, upper = (min(max(center + sign * half_width, ends[0]), ends[1]) for sign in (-1, 1))
    return asdict(
        Interval(
            level=confidence.level(),
            lower=min(lower, estimate),
            upper=max(upper, estimate),
            coverage=coverage,
        )
    )


def _simultaneous(group: Document, labels: int, ends: tuple[float, float]) -> Mapping[str, object] | None:
    """The interval for the people of a label that holds together with those of all labels."""
    if group["estimate"] is None:
        return None
    if _TOGETHER in group:
        held: Mapping[str, object] = _held_with(group, labels)["interval"]
        return held
    known = _known(group)
    return _interval(
        known.center,
        known.dataset.half_width(together(confidence.level(), labels)),
        group["interval"]["coverage"],
        ends,
        group["estimate"],
    )


def _known(group: Document) -> KnownError:
    """The error of the answer for a label.

    Raises:
        NotApplicable: there is no answer, or it was made before releases said so.
    """
    if group.get("error") is None:
        raise _not_with_others(group)
    return KnownError.read(group["error"])


def _held_with(group: Document, labels: int) -> Document:
    """The intervals of a secret label that hold together with those of others, of this number in all.

    Raises:
        NotApplicable: as `_known`.
    """
    for one in group.get(_TOGETHER, ()):
        if one["labels"] == labels:
            found: Document = one
            return found
    raise _not_with_others(group)


def _not_with_others(group: Document) -> NotApplicable:
    return NotApplicable(
        f"This release has no answer for {conditions_of(group['where'])} that can be read with others."
    )


def _ends(document: Document, study: StudyDefinition) -> tuple[float, float]:
    """Of the range that a mean is over: the one that was found, or the study's."""
    if (found := document.get("range")) is not None:
        return found["lower"], found["upper"]
    return float(study.grid.lower), float(study.grid.upper)


def _weighted(
    document: Document, reading: Reading, label_weights: LabelWeights, study: StudyDefinition
) -> Document:
    """A weighted sum of the answers for labels."""
    groups = {label_of(group["where"], reading.by): group for group in document["groups"]}
    secret = study.hides_people
    weights = label_weights.of({} if secret else {name: one["people"] for name, one in groups.items()})
    parts = [(weight, groups[label]) for label, weight in weights.items()]
    # Before anything else, since a label without an answer has no numbers.
    held = [(weight, _held_with(one, len(reading.between or groups))) for weight, one in parts if secret]
    known = KnownError.weighted([(weight, _known(one)) for weight, one in parts if not secret])
    lower, upper = _ends(document, study)
    ends = (lower - upper, upper - lower) if reading.between else (lower, upper)
    # Labels are drawn to the middle of the range for their own noise, of which less is left in the sum: it is
    # that of what they were before.
    middle = math.fsum(weight * group["estimate"] for weight, group in parts) if secret else known.center
    estimate = min(max(middle, ends[0]), ends[1])

    def interval(name: str, bound: ErrorBound) -> Mapping[str, object]:
        if secret:
            return _between_ends(held, name, ends, estimate)
        said = {group[name]["coverage"] for _, group in parts}
        coverage: Coverage = "exact" if said == {"exact"} else "at_least"
        if "worst_case" in said:
            coverage = "worst_case"
        return _interval(known.center, bound.half_width(), coverage, ends, estimate)

    shown: Document = {
        "estimate": estimate,
        "standard_error": math.hypot(*(weight * group["standard_error"] for weight, group in parts)),
        "predicted_error": _weighted_error(parts, study),
        "interval": interval("interval", known.dataset),
        "population_interval": interval("population_interval", known.population),
    }
    if not secret and known.anytime is not None:
        half = max(known.dataset.half_width(), known.anytime.half_width())
        worst = shown["interval"]["coverage"] == "worst_case"
        shown["anytime"] = _interval(
            known.center, half, "worst_case" if worst else "at_least", ends, estimate
        )
    if reading.between:
        return shown | {"of": MEAN, "between": {reading.by: list(reading.between)}}
    return shown | {
        "standardize": {
            name: {label: float(share) for label, share in own.items()}
            for name, own in reading.shares.items()
        },
        "groups": [one | {"weight": weights.get(name, 0.0)} for name, one in groups.items()],
    }


def _weighted_error(parts: Sequence[tuple[float, Document]], study: StudyDefinition) -> float | None:
    """What a weighted sum was planned to miss by; None of a release that does not say so of its labels."""
    if any("predicted_bias" not in group for _, group in parts):
        return None
    errors = [(weight, group["predicted_error"], group["predicted_bias"]) for weight, group in parts]
    return planned_errors.weighted(errors, float(study.grid.width))


def _between_ends(
    parts: Sequence[tuple[float, Document]], name: str, ends: tuple[float, float], estimate: float
) -> Mapping[str, object]:
    """Of a weighted sum of answers whose intervals hold at once: between the sums of their ends."""
    sides = [sorted(weight * one[name][end] for end in ("lower", "upper")) for weight, one in parts]
    lower, upper = (math.fsum(side[place] for side in sides) for place in (0, 1))
    center, half = (lower + upper) / 2, (upper - lower) / 2
    exact = all(one[name]["coverage"] != "worst_case" for _, one in parts)
    return _interval(center, half, "at_least" if exact else "worst_case", ends, estimate)
