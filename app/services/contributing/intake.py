"""One record on its way in: every rule about a contribution's fields, for single and bulk alike."""

from collections.abc import Mapping
from uuid import UUID

from dither.device.measures import epsilon_of_each, reported
from dither.device.texts import spelled, subject_fault

from app.core.contribution import ANY_EPSILON, Offer
from app.core.epsilon import round_down_to_significant
from app.core.errors import FieldError, InvalidRequest
from app.core.grid import NotANumber, parse_decimal
from app.core.reporting_range import FIELD, INSIDE
from app.core.study import StudyDefinition, Trust
from app.services.contributing.intake_values import ValueReader, listed
from app.services.subjects import SubjectKey

MAX_CACHED_EPSILONS = 10_000
MAX_CACHED_LENGTH = 20


class Intake:
    """Reads the records of one study.

    Attributes:
        definition: The study.
    """

    def __init__(self, definition: StudyDefinition, subject_key: SubjectKey) -> None:
        self.definition = definition
        self._one = ValueReader(definition)
        self._key = subject_key
        self._tags = {tag.value: tag for tag in definition.trust}
        self._places = {
            name: {label: place for place, label in enumerate(labels)}
            for name, labels in definition.attributes.labels.items()
        }
        self._several = definition.measures.several
        self._readers = {definition.one_measure: self._one}
        if self._several:
            self._readers = {
                name: ValueReader(definition.of_measure(name), "measure")
                for name in definition.measures.named
            }
        self._epsilons: dict[str, tuple[int, int]] = {}

    def offer(self, record: Mapping[str, object], sender: UUID, subject: str | None = None) -> Offer:
        """Validate one record.

        Args:
            record: Field to value; JSON numbers as `JsonNumber`.
            sender: The token that it came with.
            subject: The external id where it comes from the path; the record has none then.

        Raises:
            InvalidRequest: names every offending field, never a value.
        """
        errors: list[FieldError] = []
        trust = self._trust(record, errors)
        plain, named = ("report", "reports") if trust is Trust.LOCAL else ("value", "values")
        by_name = self._several or (named in record and plain not in record)
        expected = _MEASURED[trust] if by_name else _FIELDS[trust]
        for name in record:
            if name == "subject":
                if subject is not None:
                    errors.append(FieldError(name, "is in the path, and not in the document"))
            elif name not in expected and not (name == "attributes" and self._places):
                reason = "unknown field" if name not in _KNOWN else f"not for trust {trust.value}"
                if self._several and name in _OF_ONE:
                    reason = f"this study asks for {named}"
                elif name == named:
                    reason = f"not beside {plain}, which it is by name"
                errors.append(FieldError(name, reason))
        digest = self._subject(record.get("subject") if subject is None else subject, errors)
        asked = 0 if trust is Trust.PUBLIC else self._epsilon(record, trust, errors)
        amount = 0 if errors else self.definition.amount(asked)
        value, drawn, vector = 0, ANY_EPSILON, None
        given = self._by_name(record, named, errors) if by_name else record
        name, field = (self.definition.one_measure, f"{named}.") if by_name else (plain, "")
        if given is None:
            pass
        elif self._several and trust is Trust.LOCAL:
            vector = self._reports(given, amount, errors)
        elif self._several:
            vector = self._measures(given, errors)
        elif self.definition.dimension > 1:
            vector = self._vector(given, name, field + name, trust, errors)
        elif trust is Trust.LOCAL:
            worth = self.definition.randomized_with(amount)
            value, drawn = self._one.report(given, name, worth, errors, field + name)
            # A report that may be drawn with less is worth its amount, in the same unit.
            drawn = amount if drawn == worth else drawn
        else:
            value = self._one.value(given, name, errors, field + name)
        segment = self._segment(record, errors) if self._places else 0
        if FIELD in record and trust is Trust.LOCAL:
            segment += self._inside(record[FIELD], errors)
        if errors:
            raise InvalidRequest.naming(errors, "the contribution is ")
        return Offer(
            subject=digest,
            sender=sender,
            trust=trust,
            asked=asked,
            epsilon=amount,
            value=value,
            vector=vector,
            bounded=trust is Trust.LOCAL and self._one.randomizer.is_bounded,
            drawn_at_most=drawn,
            currency=self.definition.noise,
            segment=segment,
        )

    def _trust(self, record: Mapping[str, object], errors: list[FieldError]) -> Trust:
        tag = record.get("trust")
        trust = self._tags.get(tag) if type(tag) is str else None
        if trust is not None:
            return trust
        if "trust" not in record:
            errors.append(FieldError("trust", "missing"))
        else:
            errors.append(FieldError("trust", f"must be one of {', '.join(sorted(self._tags))}"))
        return Trust.CENTRAL

    def _subject(self, subject: object, errors: list[FieldError]) -> bytes:
        if subject is None:
            errors.append(FieldError("subject", "missing"))
        elif type(subject) is not str:
            errors.append(FieldError("subject", "must be a string"))
        elif (fault := subject_fault(subject)) is not None:
            errors.append(FieldError("subject", fault))
        else:
            return self._key.digest(subject)
        return b""

    def _epsilon(self, record: Mapping[str, object], trust: Trust, errors: list[FieldError]) -> int:
        if "epsilon" not in record:
            errors.append(FieldError("epsilon", "missing"))
            return 0
        text = record["epsilon"]
        if not isinstance(text, str):
            errors.append(FieldError("epsilon", "must be a number, or a string that holds one"))
            return 0
        known = self._epsilons.get(text)
        if known is None:
            micro = _micro_epsilon(text)
            known = micro, round_down_to_significant(max(micro, 0))
            if len(self._epsilons) < MAX_CACHED_EPSILONS and len(text) <= MAX_CACHED_LENGTH:
                self._epsilons[text] = known
        micro, rounded = known
        if micro < 0:
            errors.append(FieldError("epsilon", "must be a positive decimal number"))
        elif not self.definition.admits(micro):
            errors.append(FieldError("epsilon", self.definition.not_admitted))
        elif trust is Trust.LOCAL and micro != rounded:
            reason = "a local report is randomized with an epsilon of at most three significant digits"
            errors.append(FieldError("epsilon", reason))
        return rounded

    def _vector(
        self, record: Mapping[str, object], name: str, field: str, trust: Trust, errors: list[FieldError]
    ) -> tuple[int, ...] | None:
        dimension = self.definition.dimension
        if trust is Trust.LOCAL:
            reason = (
                f"values of this study have {dimension} coordinates: local people send reports to sessions"
            )
            errors.append(FieldError("trust", reason))
            return None
        return self._one.values(record, name, errors, field)

    def _by_name(
        self, record: Mapping[str, object], field: str, errors: list[FieldError]
    ) -> Mapping[str, object] | None:
        """What a record says of measures by their names; None where it has no such object."""
        given = record.get(field)
        if not isinstance(given, dict):
            errors.append(FieldError(field, "must be an object" if field in record else "missing"))
            return None
        errors += [
            FieldError(f"{field}.{name}", "unknown measure") for name in given if name not in self._readers
        ]
        return given

    def _measures(self, given: Mapping[str, object], errors: list[FieldError]) -> tuple[int, ...]:
        """The grid points of each measure on a grid of its own."""
        return tuple(
            point
            for name, one in self._readers.items()
            for point in one.values(given, name, errors, f"values.{name}")
        )

    def _reports(
        self, given: Mapping[str, object], amount: int, errors: list[FieldError]
    ) -> tuple[int | None, ...]:
        """The report of each measure, None for those that the device did not choose.

        A study takes none but those whose range belongs to the whole epsilon, and each is checked against the
        part that the offer gives it.
        """
        worth = self.definition.randomized_with(amount)
        each = epsilon_of_each(worth, len(self._readers)) if amount else 0
        found = [
            one.report(given, name, each, errors, f"reports.{name}")[0] if name in given else None
            for name, one in self._readers.items()
        ]
        if amount and len(given) != (number := reported(worth, len(self._readers))):
            reason = f"a device reports {number} of {len(self._readers)} measures with this epsilon"
            errors.append(FieldError("reports", reason))
        return tuple(found)

    def _inside(self, stated: object, errors: list[FieldError]) -> int:
        """What a segment has more of a report that states the reporting range it was made in."""
        found = self.definition.reporting_range
        if found is None:
            errors.append(FieldError(FIELD, "this study has none: report over its whole range"))
        elif stated != found.text:
            errors.append(FieldError(FIELD, f"must be the study's, {found.text}, as text"))
        return INSIDE

    def _segment(self, record: Mapping[str, object], errors: list[FieldError]) -> int:
        """The number of the combination of labels, see `app.core.attributes`."""
        given = record.get("attributes", {})
        if not isinstance(given, dict):
            errors.append(FieldError("attributes", "must be an object"))
            return 0
        if given.keys() != self._places.keys():
            unknown = [name for name in given if name not in self._places]
            missing = [name for name in self._places if name not in given]
            errors += [FieldError(f"attributes.{name}", "unknown attribute") for name in unknown]
            errors += [FieldError(f"attributes.{name}", "missing") for name in missing]
            return 0
        number = 0
        for name, places in self._places.items():
            label = given[name]
            place = places.get(label) if type(label) is str else None
            if place is None and type(label) is str and (own := spelled(label, places)) is not None:
                place = places[own]
            if place is None:
                reason = f"must be one of the study's labels, as text: {listed(list(places))}"
                errors.append(FieldError(f"attributes.{name}", reason))
                continue
            number = number * len(places) + place
        return number


_FIELDS = {
    Trust.CENTRAL: frozenset({"value", "epsilon", "trust"}),
    Trust.LOCAL: frozenset({"report", "epsilon", "trust", FIELD}),
    Trust.PUBLIC: frozenset({"value", "trust"}),
}
_MEASURED = {
    Trust.CENTRAL: frozenset({"values", "epsilon", "trust"}),
    Trust.LOCAL: frozenset({"reports", "epsilon", "trust", FIELD}),
    Trust.PUBLIC: frozenset({"values", "trust"}),
}
_OF_ONE = frozenset({"value", "report"})
_KNOWN = frozenset[str]().union(*_FIELDS.values(), *_MEASURED.values())


def _micro_epsilon(text: str) -> int:
    """Micro-epsilon, rounded down; -1 where the text is not a positive decimal number."""
    try:
        mantissa, exponent = parse_decimal(text)
    except NotANumber:
        return -1
    if mantissa <= 0:
        return -1
    power = exponent + 6
    return int(mantissa * 10**power if power >= 0 else mantissa // 10**-power)
