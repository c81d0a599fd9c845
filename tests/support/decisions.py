"""The exact law of one round of a sampler, by following all of its decisions.

A sampler asks for uniform integers, exponential coins and geometric numbers. Each of these is tested on its
own; here a script answers in their place and their probabilities multiply. With a rational number in place of
1/e they are fractions, which are compared exactly.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest

Request = tuple[str, tuple[int, ...]]
"""What is asked: its name and its arguments without the bits."""

MOST = 60
"""Geometric numbers above this are left out."""


class _Branch(Exception):
    """The script has come to its end."""

    def __init__(self, request: Request) -> None:
        self.request = request


@dataclass
class Law:
    """What one round of a sampler leads to.

    Attributes:
        outcomes: Outcome to probability.
        restarts: Probability that the sampler starts again.
    """

    outcomes: dict[Any, Any] = field(default_factory=dict)
    restarts: Any = 0

    def probability(self, outcome: Any) -> Any:
        """Of the sampler as a whole."""
        return self.outcomes.get(outcome, 0) / (1 - self.restarts)


def one_round(
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    draw: Callable[[], Any],
    *,
    restarts: Callable[[list[Request], Request], bool],
    base: Fraction | None = None,
) -> Law:
    """Follow all paths of a sampler until it ends or starts again.

    Args:
        monkeypatch: Puts the script into `module`.
        module: Where the sampler takes `below`, `bernoulli_exp` and `geometric` from.
        draw: Calls the sampler.
        restarts: Whether a request, after those before it, begins another round.
        base: What stands for 1/e; then all exponents are whole, and all probabilities fractions.
    """
    script: list[Any] = []
    asked: list[Request] = []

    def ask(name: str) -> Callable[..., Any]:
        def answer(*arguments: Any) -> Any:
            request = (name, arguments[:-1])
            if len(asked) == len(script):
                raise _Branch(request)
            asked.append(request)
            return script[len(asked) - 1]

        return answer

    for name in ("below", "bernoulli_exp", "geometric"):
        monkeypatch.setattr(module, name, ask(name), raising=False)
    law = Law()
    paths: list[tuple[list[Any], Any]] = [([], Fraction(1))]
    while paths:
        script, probability = paths.pop()
        asked = []
        try:
            outcome = draw()
        except _Branch as branch:
            if restarts(asked, branch.request):
                law.restarts += probability
            else:
                paths += [([*script, a], probability * p) for a, p in _answers(branch.request, base)]
        else:
            law.outcomes[outcome] = law.outcomes.get(outcome, 0) + probability
    return law


def _answers(request: Request, base: Fraction | None) -> list[tuple[Any, Any]]:
    name, arguments = request
    if name == "below":
        (bound,) = arguments
        return [(answer, Fraction(1, bound)) for answer in range(bound)]
    b = power(base, Fraction(*arguments))
    if name == "bernoulli_exp":
        return [(True, b), (False, 1 - b)]
    return [(k, (1 - b) * b**k) for k in range(MOST)]


def power(base: Fraction | None, exponent: Fraction) -> Any:
    """e to the negative exponent; with a base in place of 1/e exactly."""
    if base is None:
        return math.exp(-exponent)
    assert exponent.denominator == 1, "a fraction has no exact root"
    return base**exponent.numerator
