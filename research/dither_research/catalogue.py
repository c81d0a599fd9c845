"""Every table and figure that can be reproduced, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from dither_research import (
    add_remove,
    adpm_figures,
    adpm_fme,
    adpm_statements,
    amplification,
    clustering,
    clustering_default,
    hybrid,
    minimum,
    minimum_default,
    quantiles,
)
from dither_research.results import Reproduction

_ALL: tuple[Reproduction, ...] = (
    adpm_statements.TABLE_II,
    adpm_figures.FIGURE_1A,
    adpm_figures.FIGURE_1B,
    adpm_fme.FIGURE_3,
    adpm_fme.FIGURE_4,
    adpm_statements.EXAMPLE_2,
    adpm_statements.REMARK_2,
    *hybrid.FIGURES,
    clustering.FIGURE_6,
    clustering_default.TWO_ROUNDS,
    amplification.FIGURE_7,
    hybrid.FIGURE_8,
    *minimum.FIGURES,
    minimum_default.DEFAULT,
    quantiles.DEFAULT,
    add_remove.FIGURE_2,
)

REPRODUCTIONS: Mapping[str, Reproduction] = MappingProxyType({one.name: one for one in _ALL})
"""In the order of the papers."""
