"""What a person's account and statement, and a study's answers, are after one call and another.

Amounts are whole numbers [micro-epsilon].
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tests.storms.history import Call

REFUSED = ("budget_exhausted", "no_contributions", "no_gain", "says_nothing")
"""Answers to questions that depend on people, about whom a study's history says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What somebody holds in a study: `held` is what was offered, and what was spent once it is archived."""

    live: bool
    value: int = 0
    offered: int = 0
    held: int = 0
    spent: int = 0


NO_LINE = Line(live=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One person: the lines by study, in order."""

    total: int
    lines: tuple[tuple[str, Line], ...] = ()
    archived: frozenset[str] = frozenset()

    @property
    def reserved(self) -> int:
        """All that is held."""
        return sum(line.held for _, line in self.lines)

    def line(self, study: str) -> Line | None:
        """That of a study."""
        return dict(self.lines).get(study)

    def having(self, study: str, line: Line) -> "Account":
        """The account with another line."""
        return replace(self, lines=tuple(sorted({**dict(self.lines), study: line}.items())))

    @property
    def shown(self) -> tuple[object, ...]:
        """A statement: what is reserved and spent, and all lines."""
        spent = sum(line.spent for _, line in self.lines)
        lines = ((study, line.live, line.held, line.spent) for study, line in self.lines)
        return ("shows", self.total, self.reserved, spent, *lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """The accounts that one person's calls lead to.

    Attributes:
        start: The account before all calls.
    """

    start: Account

    def changes(self, call: Call) -> bool:
        """Only what was done changes an account."""
        return call.told is None or call.told[0] in ("created", "replaced", "ok", "charged")

    def after(self, state: Account, call: Call) -> Iterable[Account]:
        """What a call leads to, if it tells what was told."""
        if call.does[0] == "charge":
            return self._charged(state, *call.does[1:])
        told, later = self._done(state, *call.does)
        return [later] if call.told is None or call.told == told else []

    def _charged(self, state: Account, study: str, amounts: tuple[int, ...]) -> Iterable[Account]:
        """A person is in one of the cohorts that were charged, and can pay for it, or in none."""
        line = state.line(study)
        paid = (
            []
            if line is None or not line.live
            else [
                state.having(study, replace(line, spent=line.spent + amount))
                for amount in amounts
                if line.spent + amount <= line.held
            ]
        )
        return [*paid, state]

    def _done(self, state: Account, word: str, *of: object) -> tuple[tuple[object, ...], Account]:
        match word, *of:
            case "contribute", str(study), int(value), int(epsilon):
                return self._contribute(state, study, value, epsilon)
            case "replace", str(study), int(value), int(epsilon):
                return self._replace(state, study, value, epsilon)
            case "withdraw", str(study):
                line = state.line(study)
                if line is None:
                    return ("not_found",), state
                gone = replace(line, live=False, held=line.spent, offered=line.spent, value=0)
                return ("ok",), state.having(study, gone) if line.live else state
            case "budget", int(total):
                if total < state.reserved:
                    return ("budget_below_reserved",), state
                return ("ok",), replace(state, total=total)
            case "archive", str(study):
                line = state.line(study)
                ended = replace(state, archived=state.archived | {study})
                if line is not None and study not in state.archived:
                    ended = ended.having(study, replace(line, held=line.spent))
                return ("ok",), ended
            case "statement", *_:
                return state.shown, state
        raise AssertionError(f"nobody does {word}")

    def _contribute(
        self, state: Account, study: str, value: int, epsilon: int
    ) -> tuple[tuple[object, ...], Account]:
        line = state.line(study) or NO_LINE
        if line.live and (line.value, line.offered) == (value, epsilon):
            return ("unchanged",), state
        if study in state.archived:
            return ("study_closed",), state
        if line.live:
            return ("contribution_exists",), state
        return self._entered(state, study, line, value, epsilon, "created")

    def _replace(
        self, state: Account, study: str, value: int, epsilon: int
    ) -> tuple[tuple[object, ...], Account]:
        line = state.line(study) or NO_LINE
        if study in state.archived:
            # A replacement says the same whether or not the value was there before.
            same = line.live and (line.value, line.offered) == (value, epsilon)
            return ("replaced" if same else "study_closed",), state
        if not line.live:
            return ("not_found",), state
        return self._entered(state, study, line, value, epsilon, "replaced")

    def _entered(
        self, state: Account, study: str, line: Line, value: int, epsilon: int, word: str
    ) -> tuple[tuple[object, ...], Account]:
        if epsilon < line.spent:
            return ("epsilon_below_spent",), state
        if state.reserved + epsilon - line.held > state.total:
            return ("budget_exhausted",), state
        new = Line(live=True, value=value, offered=epsilon, held=epsilon, spent=line.spent)
        return (word,), state.having(study, new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """All answers.

    Attributes:
        made: Their studies, ids and digests.
        newest: By study, the id of the one that was made last by steps.
        keys: What each key stands for: the question and the id.
        archived: Studies that have ended.
    """

    made: frozenset[tuple[str, str, str]] = frozenset()
    newest: tuple[tuple[str, str], ...] = ()
    keys: tuple[tuple[str, tuple[object, ...], str], ...] = ()
    archived: frozenset[str] = frozenset()

    def of_key(self, key: str) -> tuple[tuple[object, ...], str] | None:
        """The question and the answer of a key."""
        return {name: (question, answer) for name, question, answer in self.keys}.get(key)

    def remembering(self, key: str, question: tuple[object, ...], answer: str) -> "Answers":
        """With a key."""
        return replace(self, keys=tuple(sorted((*self.keys, (key, question, answer)), key=str)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What calls about answers lead to: a key has one answer, and one that was made stands.

    Attributes:
        known: Studies and digests of all answers that are in the ledger at the end, by id: of a call that
            nobody heard, one of them came, or none.
        start: Before all calls.
    """

    known: Mapping[str, tuple[str, str]]
    start: Answers = field(default_factory=Answers)

    def changes(self, call: Call) -> bool:
        """What is listed, and what was refused, changes nothing."""
        return call.told is None or call.told[0] in ("made", "stands", "ok")

    def after(self, state: Answers, call: Call) -> Iterable[Answers]:
        """What a call leads to, if it tells what was told."""
        match call.does:
            case ("archive", study):
                return [replace(state, archived=state.archived | {study})]
            case ("list", study):
                shown = ("listed", *sorted(answer for place, answer, _ in state.made if place == study))
                return [state] if call.told is None or call.told == shown else []
            case ("ask", *question, str(key)):
                return self._asked(state, tuple(question), key, call.told)
        raise AssertionError(f"nobody does {call.does}")

    def _asked(
        self, state: Answers, question: tuple[object, ...], key: str, told: tuple[str, ...] | None
    ) -> Iterable[Answers]:
        study, _, fresh = question
        known = state.of_key(key)
        newest = None if fresh else dict(state.newest).get(str(study))
        there = {answer for _, answer, _ in state.made}
        if told is None:
            if known is not None or study in state.archived:
                return [state]
            made = [
                self._made(state, question, key, answer)
                for answer, (place, _) in self.known.items()
                if place == study and answer not in there
            ]
            return [*made, *([] if newest is None else [state.remembering(key, question, newest)]), state]
        word, *answer = told
        stored = (study, *answer) in state.made
        if known is not None:
            if known[0] != question:
                return [state] if word == "idempotency_key_reused" else []
            return [state] if word in ("made", "stands") and stored and answer[0] == known[1] else []
        if word in REFUSED:
            return [state]
        if study in state.archived:
            return [state] if word == "study_archived" else []
        if word == "made" and answer[0] not in there:
            same = self.known.get(answer[0]) == (study, answer[1])
            return [self._made(state, question, key, answer[0])] if same else []
        stands = word == "stands" and stored and answer[0] == newest
        return [state.remembering(key, question, answer[0])] if stands else []

    def _made(self, state: Answers, question: tuple[object, ...], key: str, answer: str) -> Answers:
        study, _, fresh = question
        made = replace(state, made=state.made | {(str(study), answer, self.known[answer][1])})
        if not fresh:
            made = replace(made, newest=tuple(sorted({**dict(state.newest), str(study): answer}.items())))
        return made.remembering(key, question, answer)
