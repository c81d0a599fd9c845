"""Sources of bits that can be repeated."""

import random
from collections.abc import Callable, Sequence
from fractions import Fraction


class BitStream:
    """The bits of a byte string, the highest bit of each byte first."""

    def __init__(self, data: bytes) -> None:
        self._bits = "".join(f"{byte:08b}" for byte in data)
        self.used = 0

    def __call__(self, width: int) -> int:
        taken = self._bits[self.used : self.used + width]
        if len(taken) < width:
            raise EOFError
        self.used += width
        return int(taken, 2)


class Seeded:
    """Repeatable random bits, for statistics."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, width: int) -> int:
        return self._random.getrandbits(width)


class Branch(Exception):
    """The script has come to its end, at a draw from so many equally likely ones."""

    def __init__(self, choices: int) -> None:
        self.choices = choices


class Script:
    """Answers from a list; at its end it asks for all continuations."""

    def __init__(self, answers: Sequence[int]) -> None:
        self._answers = iter(answers)

    def __call__(self, width: int) -> int:
        return self.below(1 << width)

    def below(self, bound: int) -> int:
        """A number below the bound, without the bits that it takes."""
        if bound == 1:
            return 0
        answer = next(self._answers, None)
        if answer is None:
            raise Branch(bound)
        return answer


def enumerate_outcomes(
    draw: Callable[[Script], int], least: Fraction
) -> tuple[dict[int, Fraction], Fraction]:
    """Probabilities of a sampler's outcomes by following all its paths that are more likely than `least`.

    Returns:
        Outcome to probability, exactly, and the probability of the paths not followed.
    """
    found: dict[int, Fraction] = {}
    left = Fraction(0)
    paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while paths:
        answers, probability = paths.pop()
        if probability < least:
            left += probability
            continue
        try:
            outcome = draw(Script(answers))
        except Branch as branch:
            each = probability / branch.choices
            paths += [((*answers, answer), each) for answer in range(branch.choices)]
        else:
            found[outcome] = found.get(outcome, Fraction(0)) + probability
    return found, left
