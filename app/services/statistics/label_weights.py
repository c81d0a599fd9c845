"""What labels weigh in a number that is read off the answers for several."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.core.attributes import Attributes
from app.estimators.raking import raked


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelWeights:
    """The weights of the cells of some attributes.

    Attributes:
        cells: Of each cell the label of each attribute, by what `label_of` calls it.
        fixed: What each weighs for any people: of a difference, or by the shares of one attribute.
        margins: In place of it the shares of several attributes, for which numbers of people are public.
    """

    cells: Mapping[str, Mapping[str, str]]
    fixed: Mapping[str, float] = field(default_factory=dict)
    margins: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of_shares(
        cls, attributes: Attributes, by: str, shares: Mapping[str, Mapping[str, float]]
    ) -> "LabelWeights":
        """By the shares that the labels of one or several attributes have in the population."""
        cells = attributes.cells(by)
        return cls(cells=cells, margins=shares) if len(shares) > 1 else cls(cells=cells, fixed=shares[by])

    def of(self, people: Mapping[str, int]) -> Mapping[str, float]:
        """What the cells weigh that weigh anything, in their order.

        Args:
            people: Of each cell; not read where weights are fixed.

        Raises:
            NotApplicable: no weights meet the margins.
        """
        found = self.fixed
        if self.margins:
            weights = raked([*self.cells.values()], [people[name] for name in self.cells], self.margins)
            found = dict(zip(self.cells, weights, strict=True))
        return {name: weight for name, weight in found.items() if weight}
