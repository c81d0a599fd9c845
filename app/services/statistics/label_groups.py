"""The answers for the labels of an attribute, as a release says them."""

from collections.abc import Mapping, Sequence

from app.core.plain import plain
from app.estimators.interface import Conclusion
from app.estimators.together import drawn_to_whole

NUMBERS = ("estimate", "standard_error", "interval", "population_interval", "error")
"""What the answer for a label says; its error is what intervals of several labels together are made of."""


def labels_shown(
    labels: Sequence[tuple[Mapping[str, str], int, int, Conclusion | None]], whole: Conclusion
) -> list[dict[str, object]]:
    """The answers for all labels, beside each the one that is drawn to the whole.

    The one that is drawn starts where the noise left it, and the estimate has been drawn to the middle of the
    range already: it stays between the estimate and the whole.

    Args:
        labels: For each its condition, its people, those of them who are left out, and its answer; None
            where there is none.
        whole: The answer for all people.

    Privacy: post-processing.
    """
    shown = [_shown(*label) for label in labels]
    answers = [
        (place, found.estimate, found.error)
        for place, (*_, found) in enumerate(labels)
        if found is not None and found.error is not None
    ]
    drawn = drawn_to_whole(
        [(error.center, error.dataset.law.variance) for *_, error in answers], whole.estimate
    )
    for (place, estimate, _), answer in zip(answers, drawn or (), strict=drawn is not None):
        lower, upper = sorted((estimate, whole.estimate))
        shown[place]["drawn_to_whole"] = min(max(answer, lower), upper)
    return shown


def _shown(
    where: Mapping[str, str], people: int, left_out: int, found: Conclusion | None
) -> dict[str, object]:
    """The answer for one label; without a number where there is none."""
    numbers = {name: None if found is None else plain(getattr(found, name)) for name in NUMBERS}
    shown: dict[str, object] = {
        "where": dict(where),
        "people": people,
        "people_left_out": left_out,
        **numbers,
        "drawn_to_whole": None,
    }
    if found is not None and found.anytime is not None:
        shown["anytime"] = plain(found.anytime)
    if found is not None and found.variance is not None:
        shown |= {"variance": plain(found.variance), "sd": plain(found.variance.root)}
    return shown
