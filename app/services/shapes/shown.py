"""What an analyst sees of a release of any kind, by what was asked. Free: it is all published."""

import json
from collections.abc import Sequence
from typing import Any

from app.core.study import StudyDefinition
from app.estimators import confidence
from app.services.shapes.questions import DISTRIBUTION, FOUND_RANGE, of_shape
from app.services.statistics.questions import REGRESSION
from app.services.statistics.reading import Reading
from app.services.statistics.readings import of_coordinates, read_off


def shown_off(body: bytes, reading: Reading, study: StudyDefinition) -> bytes:
    """A release of any kind, read at a level, as the answer to what is read off it. Free: post-processing.

    Raises:
        NotApplicable: it says nothing of what is asked.
    """
    read = _shape_off if of_shape(study, reading.ask) else read_off
    with confidence.at(reading.level):
        return read(body, reading, study)


def _shape_off(body: bytes, reading: Reading, study: StudyDefinition) -> bytes:
    """A release as the answer to a statistic that is read off it. Free: post-processing.

    Raises:
        NotApplicable: it says nothing of what is asked.
    """
    document: dict[str, Any] = json.loads(body)
    if document["estimator"] == FOUND_RANGE:
        return read_off(body, reading, study)
    statistic = reading.statistic
    if statistic == document["statistic"]:
        return body
    if "coordinates" in document:
        document = of_coordinates(document, statistic)
    if statistic == DISTRIBUTION:
        for answer in (document, *document.get("groups", ())):
            answer["bins"] = answer.pop("cumulative")
    if statistic == REGRESSION:
        document = _of_line(document, reading.line)
    return json.dumps(document | {"statistic": statistic}, separators=(",", ":")).encode()


def _of_line(document: dict[str, Any], line: Sequence[str]) -> dict[str, Any]:
    """A release of a correlation as the answer for the line of one of its numbers on the other one."""
    place = document.pop("measures").index(line[0])
    for answer in (document, *document.get("groups", ())):
        for name in ("estimate", "interval", "population_interval"):
            del answer[name]
        means, lines = answer.pop("means"), answer.pop("lines")
        answer |= dict.fromkeys(("slope", "intercept", "band")) if lines is None else lines[place]
        answer["means"] = means and [means[place], means[1 - place]]
    return document | {"of": line[0], "on": line[1]}
