"""Answers on their way in: their fields, and the transaction that stores a group of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from dither.device.randomizers import laplace_range
from dither.device.response import assigned_round
from dither.device.texts import subject_fault

from app.core.errors import FieldError, InvalidRequest
from app.core.grid import NotANumber
from app.core.numbers import JsonNumber, to_integer
from app.core.session import (
    Answer,
    AnswerOutcome,
    Given,
    SessionDefinition,
    SessionHead,
    SessionState,
    Terms,
)
from app.core.study import StudyState
from app.services.sessions.rounds import Rounds
from app.services.subjects import SubjectKey
from app.store import answers as store
from app.store import enrolments, sessions
from app.store.answers import Known
from app.store.contributions import Allowance
from app.store.database import Connection


def read_answer(
    record: Mapping[str, object],
    definition: SessionDefinition,
    terms: Terms,
    key: SubjectKey,
    sender: UUID,
) -> Answer:
    """Validate the fields of one answer.

    Args:
        record: Field to value; JSON numbers as `JsonNumber`.
        definition, terms: Of the session.
        key: For the digest of the external id.
        sender: The token that it came with.

    Raises:
        InvalidRequest: names every offending field, never a value.
    """
    errors: list[FieldError] = []
    if not terms.takes_answers:
        raise InvalidRequest.field("answer", "the study of this session has no local people")
    fields = _FIELDS if terms.report_dimension is None else _FIELDS | {"report"}
    errors += [FieldError(name, "unknown field") for name in record if name not in fields]
    subject = _subject(record, errors)
    round_number = _integer(record, "round", 1, terms.rounds, errors)
    answer = _integer(record, "answer", 0, terms.categories - 1, errors)
    report = None
    if terms.report_dimension is not None and "report" in record:
        report = _report(record["report"], terms.report_dimension, terms.epsilon_report, errors)
    if errors:
        raise InvalidRequest.naming(errors, "the answer is ")
    assigned = None
    if definition.assignment_key is not None:
        assigned = assigned_round(definition.assignment_key, subject, terms.rounds)
    return Answer(
        subject=key.digest(subject),
        sender=sender,
        round=round_number,
        assigned=assigned,
        answer=answer,
        report=report,
    )


_FIELDS = frozenset({"subject", "round", "answer"})


def _subject(record: Mapping[str, object], errors: list[FieldError]) -> str:
    subject = record.get("subject")
    if "subject" not in record:
        errors.append(FieldError("subject", "missing"))
    elif type(subject) is not str:
        errors.append(FieldError("subject", "must be a string"))
    elif (fault := subject_fault(subject)) is not None:
        errors.append(FieldError("subject", fault))
    else:
        return subject
    return ""


def _integer(record: Mapping[str, object], name: str, low: int, high: int, errors: list[FieldError]) -> int:
    number = record.get(name)
    if name not in record:
        errors.append(FieldError(name, "missing"))
        return low
    value = None
    if type(number) is JsonNumber:
        try:
            value = to_integer(number)
        except NotANumber:
            value = None
    if value is None:
        errors.append(FieldError(name, "must be an integer"))
        return low
    if not low <= value <= high:
        errors.append(FieldError(name, f"must be between {low} and {high}"))
        return low
    return value


def _report(document: object, dimension: int, epsilon: int, errors: list[FieldError]) -> tuple[int, ...]:
    """A report's grid points, which may lie outside the grid but not further than any honest one."""
    if not isinstance(document, list) or len(document) != dimension:
        errors.append(FieldError("report", f"must be an array of {dimension} integers"))
        return ()
    named = {f"report.{place}": number for place, number in enumerate(document)}
    possible = laplace_range(epsilon, dimension=dimension)
    return tuple(_integer(named, name, possible.lower, possible.upper, errors) for name in named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What became of a group of answers.

    Attributes:
        given: One each.
        moved: Whether the session moved on.
        closing: Whether its round is over and waits for its central part.
    """

    given: Sequence[Given]
    moved: bool
    closing: bool


async def take_answers(
    connection: Connection,
    definition: SessionDefinition,
    terms: Terms,
    answers: Sequence[Answer],
    *,
    rounds: Rounds,
    allowance: Allowance,
) -> Intake:
    """Store a group of answers of one session; they may close one or more of its rounds.

    A round that closes by its number of answers gets exactly this number: the others of the group are late.

    Args:
        connection: An open transaction.
        definition, terms: Of the session.
        answers: In the order of their arrival; a subject may occur more than once.
        rounds: Closes them.
        allowance: Budget of subjects who are seen for the first time.
    """
    # 1. Be alone with the session, and do what is due by time before the first answer.
    found = await sessions.lock_for_answers(connection, definition.id)
    head = await rounds.catch_up(connection, definition, found)
    given: dict[int, Given] = {}
    stored = 0
    waiting = list(range(len(answers)))
    while waiting:
        # 2. Judge each answer that is left by the round that is open now. Of those that are to be stored,
        #    choose one for each subject, and no more than the round still takes.
        known = await store.look_up(connection, definition.id, [answers[index] for index in waiting])
        limit = definition.answers_per_round
        room = len(waiting) if limit is None else limit - head.answers
        chosen: dict[bytes, tuple[Answer, Known, int]] = {}
        rest = []
        for index, holding in zip(waiting, known, strict=True):
            answer = answers[index]
            outcome = judge(answer, holding, head, terms, closing=rounds.is_closing(definition, head))
            if outcome is not None:
                given[index] = Given(outcome=outcome, spent=holding.spent or 0)
            elif answer.subject in chosen or len(chosen) >= max(room, 1):
                rest.append(index)
            else:
                chosen[answer.subject] = (answer, holding, index)
        # 3. Store the chosen ones; the budget may refuse some.
        accepted = await _store(connection, definition, terms, chosen, allowance)
        for subject, (_, holding, index) in chosen.items():
            spent = holding.spent or 0
            if subject in accepted:
                spent += terms.cost(first=holding.spent is None)
                given[index] = Given(outcome=AnswerOutcome.CREATED, spent=spent)
            else:
                given[index] = Given(outcome=AnswerOutcome.BUDGET_EXHAUSTED, spent=spent)
        # 4. Close the round if it has its answers. The rest is judged by the next round.
        stored += len(accepted)
        head = replace(head, answers=head.answers + len(accepted))
        if limit is not None and head.answers >= limit:
            closed = await rounds.close(connection, definition, head)
            stored = stored if closed == head else 0
            head = closed
        waiting = rest
    # 5. Count the answers of the round that is still open; closing one sets its count to zero.
    if stored:
        await sessions.count_answers(connection, definition.id, stored)
    return Intake(
        given=[given[index] for index in range(len(answers))],
        moved=head.round != found.round,
        closing=rounds.is_closing(definition, head),
    )


def judge(
    answer: Answer, known: Known, head: SessionHead, terms: Terms, *, closing: bool
) -> AnswerOutcome | None:
    """What becomes of an answer by itself; None where it is to be stored if the budget allows it."""
    # What another token sends is another answer, and another report, whatever is in it.
    report = known.report if known.report_sender == answer.sender else None
    other_report = known.spent is not None and answer.report not in (None, report)
    if known.answer is not None:
        same = (known.answer, known.sender) == (answer.answer, answer.sender) and not other_report
        return AnswerOutcome.UNCHANGED if same else AnswerOutcome.ANSWER_EXISTS
    if head.state is SessionState.FINISHED or head.round is None or answer.round < head.round:
        return AnswerOutcome.ROUND_CLOSED
    if answer.round > head.round:
        return AnswerOutcome.ROUND_NOT_OPEN
    if closing:
        return AnswerOutcome.ROUND_CLOSED
    if known.spent is None and known.study is not StudyState.OPEN:
        return AnswerOutcome.STUDY_CLOSED
    if answer.assigned not in (None, answer.round):
        return AnswerOutcome.NOT_YOUR_ROUND
    if other_report:
        return AnswerOutcome.ANSWER_EXISTS
    if known.spent is None and terms.report_dimension is not None and answer.report is None:
        return AnswerOutcome.REPORT_MISSING
    return None


async def _store(
    connection: Connection,
    definition: SessionDefinition,
    terms: Terms,
    chosen: Mapping[bytes, tuple[Answer, Known, int]],
    allowance: Allowance,
) -> set[bytes]:
    """Store answers of different people to the open round; return whose are stored."""
    ordered = [chosen[subject] for subject in sorted(chosen)]
    joining = [answer for answer, known, _ in ordered if known.spent is None]
    enrolled = [answer for answer, known, _ in ordered if known.spent is not None]
    accepted: set[bytes] = set()
    if joining:
        accepted |= await enrolments.accept_new(connection, definition.id, joining, terms, allowance)
    costs = [terms.cost(first=False)] * len(enrolled)
    return accepted | await store.accept_enrolled(connection, definition.id, enrolled, costs)
