"""What an answer about the distribution of the values says of itself; without the database."""

from app.services.shapes.priced_plan import Answered
from app.services.shapes.shape_request import Made, ShapeRequest
from app.services.statistics.drafts import Said

VERSION = 5
"""Grows whenever the distribution of answers changes."""


def said(request: ShapeRequest, made: Made, answered: Answered) -> Said:
    """What it says."""
    question, crowd = request.question, made.crowd
    return Said(
        estimator=question.estimator,
        version=VERSION,
        parameters=question.asked(),
        numbers={"predicted_error": made.predicted_error, **answered.body},
        people=crowd.people,
        left_out=crowd.why_left_out,
        width=made.interval_width,
        most=made.most,
        most_in_all=made.most_in_all,
        noise=answered.noise,
        charges=answered.charges,
        used=made.used,
        taken=answered.taken,
    )
