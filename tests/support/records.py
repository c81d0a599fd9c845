"""Contribution records, good and hostile, as text; and what CSV and the SDK can say of each.

A record is made once and sent through several doors. So that no door finds what another one left, each door
is a number that takes the place of `LANE` in the record's subject.
"""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from app.core.study import LocalMechanism
from tests.support.reports import report_range

LANE = "§"
NUMBER_FIELDS = ("value", "report", "epsilon")
CSV_COLUMNS = ("subject", "value", "report", "epsilon", "trust")

_DECIMAL = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?", re.ASCII)

_words = str.split

NUMBERS = (
    *_words("0 -0 -0.0 0.0 100 1e2 1E+2 1.0e+02 1000000e-4 0.1e1 1e-99 -1e-99 1e99 1e100 1e-100 -5 1e1"),
    *_words("100.0000000000000000001 99.99999999999999999999 -0.0000000000000000001 12345678901234567890"),
    *("9" * 30, "9" * 31, "0." + "3" * 30, "0." + "3" * 31, "9" * 5_000, "1e999999999", "1" + "0" * 400),
    *("NaN", "Infinity", "-Infinity"),
)
BROKEN_NUMBERS = ("1.", ".5", "+1", "0x10", "1_000", "01", "--1", "1e", "1,5", "nan", "True")
EPSILONS = (
    *_words("0.001 0.000999 0.0009999999 0.0100000001 10 10.0000001 9.999 1.2345 0 -1 -0.0 1e-6 1e-7 1e3"),
    *_words('"1.5" "1e0" "1e-2" "007" "+1" "" "abc" "NaN"'),
    '"0.5 "',
)
STRINGS = (
    *_words(r'"" "5" "50" "0x1f" "1e1" "-0" "007" "\u0000" "\ud83d\ude00" "٣" "a,b" "a\"b" "a\nb" "a;b"'),
    *('"1;2;3"', '"null"', '"true"', '"ＮａＮ"', '"é\u202e"', '" 50"', f'"{"x" * 300}"'),
)
LONE_SURROGATES = (r'"\ud800"', r'"a\udfff"', r'"\ud83d\ud83d"', r'"\ude00\ud83d"', '"\udc80"')
OTHER_TYPES = (
    *("null", "true", "false", "[]", "{}", "[1]", "[1,2,3]", "[null,1,2]", '["1","2","3"]', '{"a":1}'),
    *("[[1]]", '{"value":50}', "[1e1,-0.0,100]", "[0,0,101]"),
)
NOT_OBJECTS = ("5", '"text"', "null", "true", "[]", "[1,2]", "-0.0", "NaN")
NOT_JSON = (
    *('{"subject":', "{", "}", "{,}", "{'subject':'x'}", '{"subject" "x"}', '{"a":1,}', "nul", '"', "[1"),
    *("\x00", "{}{}"),
)
UNKNOWN_NAMES = (
    *("note", "Value", "values", "epsilon_", "", r"\u0000", "x" * 500, "délta", "delta", "vector", "bounded"),
    *("__class__", "study", "id", "sub ject", r"\ud83d\ude00"),
)
SUBJECTS = (
    *_words(r"Ünïcödé 日本語 \u0000nul a,b q\"q line\nbreak tab\t \ud83d\ude00 a/b?c#d%20 <b> %00 =1+1 - \\"),
    *("e\u0301", " space ", "'; DROP TABLE subject;--", "\u202eright", "\ufeffbom", "x" * 240),
)
TRUSTS = (
    *('"CENTRAL"', '"central "', '"Local"', '"nobody"', r'"c\u0065ntral"', '["central"]', '{"central":1}'),
    "0",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A study as the generator knows it."""

    slug: str
    trust: tuple[str, ...] = ("central", "local", "public")
    mechanism: str = "laplace"
    dimension: int = 1
    delta: str = "0"
    relation: str = "replace_one"
    epsilons: tuple[str, ...] = ()

    @property
    def answers(self) -> bool:
        """Whether a mean can be asked of it that spends of everybody."""
        return self.dimension == 1 and self.relation == "replace_one"


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes:
        text: Its JSON, with `LANE` in its subject.
        fields: Its fields as (name, JSON text) in order, where they are what the text says; None of what is
            no object.
    """

    text: str
    fields: tuple[tuple[str, str], ...] | None

    def body(self, lane: int) -> bytes:
        """The bytes of the record on its way through a door."""
        return self.text.replace(LANE, str(lane)).encode("utf-8", "surrogatepass")

    @property
    def is_utf8(self) -> bool:
        """Whether its bytes are text."""
        return not any("\ud800" <= character <= "\udfff" for character in self.text)

    def plain(self, lane: int) -> dict[str, object] | None:
        """Its fields with numbers as `NumberText`; None where a name comes twice or it is no object."""
        if self.fields is None:
            return None
        fields = [(parse(f'"{name}"'), parse(text.replace(LANE, str(lane)))) for name, text in self.fields]
        return dict(fields) if len(dict(fields)) == len(fields) else None


class NumberText(str):
    """The text of a JSON number."""

    __slots__ = ()


def parse(text: str) -> Any:
    """The value of JSON text, its numbers as text."""
    return json.loads(text, parse_float=NumberText, parse_int=NumberText, parse_constant=NumberText)


def write(value: object) -> str:
    """JSON text of what `parse` made."""
    if isinstance(value, NumberText):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(name))}:{write(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    return json.dumps(value)


def render(fields: Sequence[tuple[str, str]], space: str = "") -> Record:
    """The record of these fields."""
    text = "{" + ",".join(f'{space}"{name}"{space}:{space}{value}' for name, value in fields) + space + "}"
    return Record(text, tuple(fields))


class Generator:
    """Records for one study, out of a seed.

    Args:
        kind: The study.
        seed: Of the draws.
        known: Subjects (with `LANE`) that the service knows already; each is used at most once.
        first: The number of the first new subject: studies share no people, whose budget they would share.
    """

    def __init__(self, kind: Kind, seed: int, known: Sequence[str], first: int) -> None:
        self._kind = kind
        self._random = random.Random(f"{kind.slug} {seed}")
        self._known = list(known)
        self._number = first

    def record(self) -> Record:
        """The next record: good, or with one or two things wrong."""
        draw = self._random
        if draw.random() < 0.04:
            return Record(draw.choice(NOT_OBJECTS), None)
        if draw.random() < 0.04:
            return Record(self._broken(), None)
        fields = self._good()
        for _ in range(draw.choice((0, 1, 1, 1, 2))):
            draw.choice(self._mutations)(self, fields)
        if draw.random() < 0.3:
            draw.shuffle(fields)
        record = render(fields, draw.choice(("", "", " ", "\t ")))
        return Record(record.text, record.fields if _is_json(record.text) else None)

    def _good(self) -> list[tuple[str, str]]:
        draw, kind = self._random, self._kind
        trust = draw.choice(kind.trust)
        if kind.dimension > 1 and trust == "local" and draw.random() < 0.8:
            trust = "central"
        epsilon = draw.choice(("1", "0.5", "2", "1.25", "0.01", '"1"', "1.0", "10e-1", "9.99"))
        fields = [("subject", self._subject())]
        if trust == "local":
            fields.append(("report", self._report(parse(epsilon))))
        else:
            fields.append(("value", self._value()))
        if trust != "public":
            fields.append(("epsilon", epsilon))
        return [*fields, ("trust", f'"{trust}"')]

    def _subject(self) -> str:
        draw = self._random
        self._number += 1
        if self._known and draw.random() < 0.25:
            return f'"{self._known.pop()}"'
        if draw.random() < 0.3:
            return f'"{draw.choice(SUBJECTS)}{self._number}-{LANE}"'
        return f'"person-{self._number}-{LANE}"'

    def _value(self) -> str:
        if self._kind.dimension > 1:
            return "[" + ",".join(self._coordinate() for _ in range(self._kind.dimension)) + "]"
        return self._coordinate()

    def _coordinate(self) -> str:
        draw = self._random
        return draw.choice(
            ("50", "0", "100", "37.5", "5e1", f"{draw.uniform(0, 100):.{draw.randrange(15)}f}")
        )

    def _report(self, epsilon: str) -> str:
        draw = self._random
        micro, delta = int(Decimal(epsilon) * 10**6), int(Decimal(self._kind.delta) * 10**12)
        possible = report_range(LocalMechanism(self._kind.mechanism), micro, delta)
        if draw.random() < 0.2:
            return str(draw.choice((possible.lower - 1, possible.upper + 1)))
        middle = possible.lower if possible.only else draw.randint(possible.lower, possible.upper)
        return str(draw.choice((possible.lower, possible.upper, middle)))

    def _broken(self) -> str:
        draw = self._random
        depth = draw.choice((33, 40, 2_000, 9_000))
        deep = ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth)
        return draw.choice(
            (*NOT_JSON, *deep, f'{{"subject":"a","subject":"b","x":{deep[0]}}}', f'{{"a":{deep[1]}}}')
        )

    # -- what goes wrong; each changes the fields in place

    def _set(self, fields: list[tuple[str, str]], name: str, text: str) -> None:
        for place, (known, _) in enumerate(fields):
            if known == name:
                fields[place] = (name, text)
                return
        fields.append((name, text))

    def _a_number(self, fields: list[tuple[str, str]]) -> None:
        name = self._random.choice(("value", "report", "epsilon", "value"))
        self._set(fields, name, self._random.choice(NUMBERS))

    def _a_coordinate(self, fields: list[tuple[str, str]]) -> None:
        numbers = [
            self._random.choice((*NUMBERS, *STRINGS, "null", "50", "60"))
            for _ in range(self._random.choice((2, 3, 3, 4)))
        ]
        self._set(fields, "value", "[" + ",".join(numbers) + "]")

    def _an_epsilon(self, fields: list[tuple[str, str]]) -> None:
        self._set(fields, "epsilon", self._random.choice(EPSILONS))

    def _a_report(self, fields: list[tuple[str, str]]) -> None:
        far = (
            1 << 62,
            -(1 << 62),
            (1 << 62) + 1,
            (1 << 63),
            1 << 31,
            "1.5",
            "5.0",
            "5e0",
            "5e-1",
            "1e18",
            "1e19",
        )
        self._set(fields, "report", str(self._random.choice(far)))
        self._set(fields, "trust", '"local"')

    def _a_trust(self, fields: list[tuple[str, str]]) -> None:
        self._set(fields, "trust", self._random.choice((*TRUSTS, '"central"', '"local"', '"public"')))

    def _a_broken_number(self, fields: list[tuple[str, str]]) -> None:
        self._set(fields, self._random.choice(NUMBER_FIELDS), self._random.choice(BROKEN_NUMBERS))

    def _a_string(self, fields: list[tuple[str, str]]) -> None:
        self._set(fields, self._random.choice((*NUMBER_FIELDS, "trust")), self._random.choice(STRINGS))

    def _half_a_surrogate(self, fields: list[tuple[str, str]]) -> None:
        name = self._random.choice(("subject", "trust", "value", "epsilon"))
        self._set(fields, name, self._random.choice(LONE_SURROGATES))

    def _another_type(self, fields: list[tuple[str, str]]) -> None:
        self._set(fields, self._random.choice(CSV_COLUMNS[1:]), self._random.choice(OTHER_TYPES))

    def _another_subject(self, fields: list[tuple[str, str]]) -> None:
        self._number += 1
        number = f"{self._number}{LANE}"
        texts = (number, f"-{number}", f"[{number}]", f'["{number}"]', f'{{"a":{number}}}', "null", '""')
        self._set(fields, "subject", self._random.choice(texts))

    def _a_long_subject(self, fields: list[tuple[str, str]]) -> None:
        self._number += 1
        length = self._random.choice((256, 257, 10_000))
        self._set(fields, "subject", '"' + f"{self._number}-{LANE}".rjust(length, "é") + '"')

    def _an_unknown_field(self, fields: list[tuple[str, str]]) -> None:
        values = (*OTHER_TYPES, *STRINGS, "1")
        for _ in range(self._random.choice((1, 1, 2, 30))):
            name = self._random.choice(UNKNOWN_NAMES) + self._random.choice(("", "", "2", str(len(fields))))
            self._set(fields, name, self._random.choice(values))

    def _a_missing_field(self, fields: list[tuple[str, str]]) -> None:
        if fields:
            del fields[self._random.randrange(len(fields))]

    def _a_field_twice(self, fields: list[tuple[str, str]]) -> None:
        if fields:
            name, text = self._random.choice(fields)
            # The first may go missing: what stays must still be one subject a lane.
            other = text if name == "subject" else self._random.choice((text, "1", '"x"', "null"))
            fields.append((name, other))

    def _nesting(self, fields: list[tuple[str, str]]) -> None:
        depth = self._random.choice((5, 30, 31, 32, 33, 200))
        self._set(fields, self._random.choice((*CSV_COLUMNS[1:], "deep")), "[" * depth + "1" + "]" * depth)

    _mutations: Sequence[Callable[["Generator", list[tuple[str, str]]], None]] = (
        *(
            _a_number,
            _a_number,
            _a_coordinate,
            _an_epsilon,
            _an_epsilon,
            _a_report,
            _a_trust,
            _a_broken_number,
        ),
        *(
            _a_string,
            _half_a_surrogate,
            _another_type,
            _another_type,
            _another_subject,
            _a_long_subject,
        ),
        *(_an_unknown_field, _a_missing_field, _a_missing_field, _a_field_twice, _nesting),
    )


def _is_json(text: str) -> bool:
    try:
        parse(text.replace(LANE, "1"))
    except (ValueError, RecursionError):
        return False
    return True


# ------------------------------------------------------------------------------------ other doors


def csv_cells(record: Mapping[str, object]) -> dict[str, str]:
    """What the cells of a row must hold to say the same as nearly as CSV can."""
    return {name: _cell(name, value) for name, value in record.items()}


def _cell(name: str, value: object) -> str:
    if isinstance(value, str):
        return str(value)
    if name == "value" and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ";".join(value)
    return "" if value is None else write(value)


def read_cells(cells: Mapping[str, str], dimension: int) -> dict[str, object]:
    """The JSON record that a row stands for: cells have no types, and an empty one is no field.

    Spaces around cells do not count, nor does the case of a tag.
    """
    record: dict[str, object] = {}
    for name, padded in cells.items():
        cell = padded.strip().lower() if name == "trust" else padded.strip()
        if not cell:
            continue
        if name == "value" and dimension > 1:
            record[name] = [_number(part.strip()) for part in cell.split(";")]
        elif name in NUMBER_FIELDS:
            record[name] = _number(cell)
        else:
            record[name] = cell
    return record


def _number(cell: str) -> object:
    """A cell of a column of numbers; leading zeros, which JSON does not have, mean nothing."""
    if _DECIMAL.fullmatch(cell):
        return NumberText(re.sub(r"^(-?)0+(?=[0-9])", r"\1", cell))
    return cell


def as_numbers(value: object) -> object:
    """A value whose texts count as the numbers that they hold."""
    if isinstance(value, list):
        return [as_numbers(item) for item in value]
    if isinstance(value, dict):
        return {name: as_numbers(item) for name, item in value.items()}
    return _number(value) if isinstance(value, str) else value


def argument(value: object) -> Any:
    """What a program would hand the SDK for a JSON value."""
    if isinstance(value, NumberText):
        try:
            return float(value) if value[-1] in "Nny" else Decimal(value)
        except (InvalidOperation, ValueError):
            return str(value)
    if isinstance(value, list):
        return [argument(item) for item in value]
    if isinstance(value, dict):
        return {name: argument(item) for name, item in value.items()}
    return value
