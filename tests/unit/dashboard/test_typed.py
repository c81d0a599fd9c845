"""Numbers as people type them."""

import pytest

from app.dashboard.typed import Mark, typed

TYPED: dict[Mark, dict[str, str | None]] = {
    ".": {
        "12.5": "12.5",
        "12,5": "12.5",
        "0,125": "0.125",
        "1,234": None,
        "-12,345,678": None,
        "1,234.5": "1234.5",
        "1.234,5": "1234.5",
        "1.234": "1.234",
        "1234,5678": "1234.5678",
        "1234,567": "1234,567",
        "1,2345,6": "1,2345,6",
        "1.2.3": "1.2.3",
        "1,23.4": "1,23.4",
        " 1 234.5": "1234.5",
        "1\u202f234,5": "1234.5",
        "\u22125": "-5",
        "+5": "+5",
        "abc": "abc",
        "": "",
    },
    ",": {
        "12,5": "12.5",
        "12.5": "12.5",
        "0.125": "0.125",
        "1.234": None,
        "12.345.678": None,
        "1.234,5": "1234.5",
        "1,234.5": "1234.5",
        "1,234": "1.234",
        "1234.567": "1234.567",
        "1,2,3": "1,2,3",
        ",5": ".5",
        "-1.234.567,25": "-1234567.25",
    },
}
"""What people mean, by the mark before decimals in their language."""


@pytest.mark.parametrize("mark", list(TYPED))
def test_a_number_is_read_as_people_of_a_language_write_it(mark: Mark) -> None:
    assert {text: typed(text, mark) for text in TYPED[mark]} == TYPED[mark]


@pytest.mark.parametrize("mark", list(TYPED))
def test_a_thousand_is_never_silently_one(mark: Mark) -> None:
    """A number that the other language groups is a question, not a thousandth."""
    other = "," if mark == "." else "."
    for number in (1_000, 12_345, 999_999, 1_000_000):
        assert typed(f"{number:,}".replace(",", other), mark) is None
        both = f"{number:,}.5".replace(",", "g").replace(".", mark).replace("g", other)
        assert typed(both, mark) == f"{number}.5"
