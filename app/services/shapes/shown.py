"""What an analyst sees of a release of any kind, by what was asked. Free: it is all published."""

import json
from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter
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
        document = _of_line(document, reading.line, reading.at)
    return json.dumps(document | {"statistic": statistic}, separators=(",", ":")).encode()


def _of_line(document: dict[str, Any], line: Sequence[str], at: float | None) -> dict[str, Any]:
    """A release of a correlation as the answer for the line of one of its numbers on the other one.

    Args:
        document: The release.
        line: The number that is explained, and the one that explains.
        at: Where on the second one the line is asked for, in its range; None for nowhere.
    """
    place = document.pop("measures").index(line[0])
    for answer in (document, *document.get("groups", ())):
        for name in ("estimate", "interval", "population_interval"):
            del answer[name]
        means, lines = answer.pop("means"), answer.pop("lines")
        answer |= dict.fromkeys(("slope", "intercept", "band")) if lines is None else lines[place]
        answer["means"] = means and [means[place], means[1 - place]]
        if at is not None:
            answer["prediction"] = lines and _predicted(lines[place], at)
    return document | {"of": line[0], "on": line[1]}


def _predicted(line: dict[str, Any], at: float) -> dict[str, Any]:
    """Where a line is at one place of the range: between the two points of its band beside that.

    A line that lies in the band at both lies between their ends (`app.estimators.lines`).
    """
    band, interval = line["band"], line["slope"]["interval"]
    place = min(max(bisect_left(band, at, key=itemgetter("at")), 1), len(band) - 1)
    first, last = band[place - 1 : place + 1]
    part = (at - first["at"]) / (last["at"] - first["at"])
    estimate, lower, upper = (
        (1 - part) * first[name] + part * last[name] for name in ("estimate", "lower", "upper")
    )
    return {"at": at, "estimate": estimate, "interval": interval | {"lower": lower, "upper": upper}}
