"""What people agree to in a study, in one sentence, and the sets of privacy steps of a new one."""

from collections.abc import Mapping
from decimal import Decimal

from app.core.measures import Measure
from app.core.study import StudyDefinition, Trust
from app.dashboard import answer_form

STEPS: Mapping[str, tuple[str, ...]] = {
    "strong": ("0.1", "0.5", "1"),
    "usual": ("0.5", "1", "2"),
    "light": ("1", "2", "4"),
}
"""Epsilons that people choose one of, by what a set is called, the most private one first."""

WHOM: Mapping[Trust, str] = {
    Trust.CENTRAL: "this service (it publishes only noisy numbers about all people together)",
    Trust.LOCAL: "no one (their own device adds the noise before anything is sent)",
    Trust.PUBLIC: "everyone (without any noise)",
}


def step_sets() -> list[tuple[str, str, str]]:
    """Name of each set, its epsilons, and how often in 100 times a guess is right at most for each.

    The odds are those of the noise and the relation that a study has by default.

    >>> step_sets()[1]
    ('usual', '0.5, 1 or 2', '63, 74 or 89')
    """
    return [
        (
            name,
            _list(epsilons, "or"),
            _list([str(answer_form.times_in_100(float(one))) for one in epsilons], "or"),
        )
        for name, epsilons in STEPS.items()
    ]


def agreed(definition: StudyDefinition) -> str:
    """What people agree to who answer a study."""
    steps = answer_form.steps(definition)
    secret = definition.hides_people
    asked = _asked(definition)
    if labels := definition.attributes.labels:
        named = [f"{name} ({_list(own, 'or')})" for name, own in labels.items()]
        asked += f", and for their {_list(named, 'and')}"
    trust = _list([WHOM[tag] for tag in Trust if tag in definition.trust], "or")
    parts = [f"People are asked for {asked}; they trust {trust}"]
    if definition.trust != {Trust.PUBLIC}:
        knows = "who sees all that is ever published and knows all other answers guesses"
        of_answer = _times_of([one.of_answer for one in steps])
        by = ", by the step of privacy that a person chooses" if len(steps) > 1 else ""
        parts.append(f"one {knows} which of two answers is theirs right at most {of_answer}{by}")
    if secret:
        of_presence = _times_of([one.of_presence or 0 for one in steps])
        parts.append(f"whether a person takes part is secret, too, and guessed right at most {of_presence}")
    elif labels:
        parts.append("how many people take part, and with which of these labels, is public")
    else:
        parts.append("how many people take part is public")
    return "; ".join(parts) + "; and none of this changes afterwards."


def _asked(definition: StudyDefinition) -> str:
    if definition.measures:
        return _list([f"{name} ({_of(one)})" for name, one in definition.measures.named.items()], "and")
    one = Measure(definition.lower, definition.upper, definition.choices, definition.dimension)
    return _of(one)


def _of(one: Measure) -> str:
    """What is asked, with its range and the step in which values are kept.

    >>> _of(Measure(Decimal(0), Decimal(120)))
    'a number from 0 to 120, kept in steps of 0.000000112'
    """
    if one.choices:
        return f"one of {_list(one.choices, 'and')}"
    what = "a number" if one.dimension == 1 else f"{one.dimension} numbers, each"
    step = f"{Decimal(f'{one.step:.3g}'):f}"
    return f"{what} from {one.lower:,f} to {one.upper:,f}, kept in steps of {step}"


def _times_of(odds: list[int]) -> str:
    return f"{_list([str(one) for one in odds], 'or')} times in 100 instead of 50"


def _list(words: tuple[str, ...] | list[str], last: str) -> str:
    """Words in a row.

    >>> _list(["a", "b", "c"], "or")
    'a, b or c'
    """
    *before, end = words
    return f"{', '.join(before)} {last} {end}" if before else end
