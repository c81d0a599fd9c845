"""The hybrid paper's figures, as they are listed."""

from dither_research.hybrid_figures import figure_1, figure_2, figure_3, figure_4, figure_5, figure_8
from dither_research.results import Heat, Lines, Reproduction

PAPER = "Avent, Dubey, Korolova, doi:10.2478/popets-2020-0062"

_SETTING = {"setting": "share c of central people and epsilon", "n": "people", "improvement": "R or r"}


def _curves(panel: str, label: str, *, log_y: bool = False, share_y: bool = True) -> Lines:
    return Lines(
        x="n",
        y="improvement",
        series="setting",
        panel=panel,
        x_label="people n",
        y_label=label,
        log_x=True,
        log_y=log_y,
        levels=((1.0, ""),),
        share_y=share_y,
    )


def _plane(label: str, *, log_value: bool = False) -> Heat:
    return Heat(
        x="share",
        y="epsilon",
        value="improvement",
        panel="measure",
        x_label="people who trust the curator, c [%]",
        y_label="epsilon",
        value_label=label,
        log_x=True,
        log_y=True,
        log_value=log_value,
    )


_PLANE = {
    "measure": "R or r",
    "share": "people who trust the curator, c [%]",
    "epsilon": "every person's epsilon",
    "improvement": "the worse (r) or better (R) baseline's error over the estimator's",
}

FIGURES = (
    Reproduction(
        name="hybrid-figure-1",
        title="R(KVH), the better baseline's error over the hybrid estimator's",
        paper=f"{PAPER}, Figure 1",
        columns={"data": "law of the data"} | _SETTING,
        figure=_curves("data", "R(KVH)"),
        runs=None,
        compute=figure_1,
        errata=(
            "Wrong: Corollary 4.4 bounds the maximum by 16/7. The supremum is 17/8; no maximum is attained.",
            "Wrong: Lemma 3.6 (the n from which the central part is better) lost minus signs; as printed, 46 "
            "of 4000 random settings are on the wrong side. Definition 3.7 says E_L instead of E_F, and "
            "the gamma printed in Theorem 4.3 is the error itself, not R's factor.",
        ),
    ),
    Reproduction(
        name="hybrid-figure-2",
        title="R(KVH) for 252,540 salaries, range 2,349,033, standard deviation 53,254",
        paper=f"{PAPER}, Figure 2",
        columns=_PLANE,
        figure=_plane("R(KVH)"),
        runs=None,
        compute=figure_2,
    ),
    Reproduction(
        name="hybrid-figure-3",
        title="R(PWH) and r(PWH): weights by the noise alone, over the better and the worse baseline",
        paper=f"{PAPER}, Figure 3",
        columns={"panel": "R or r, and the law of the data"} | _SETTING,
        figure=_curves("panel", "improvement", log_y=True, share_y=False),
        runs=None,
        compute=figure_3,
        errata=(
            "Wrong: the conditions of section 5 for R(PWH) > 1 are those of the weight w = c. For PWH it is "
            "c >= y / (2 + y) or n < (1 - c)(2 + y) / (c (y (1 - c) - 2 c)), y = epsilon^2 v / m^2.",
            "Wrong: r(E_H(0.001)) falls below 1 at n = 10,057 already.",
        ),
    ),
    Reproduction(
        name="hybrid-figure-4",
        title="R(KVH) where the two parts vary differently",
        paper=f"{PAPER}, Figure 4",
        columns={"panel": "which part varies more"} | _SETTING,
        figure=_curves("panel", "R(KVH)"),
        runs=None,
        compute=figure_4,
    ),
    Reproduction(
        name="hybrid-figure-5",
        title="R(KVH) where the parts' means differ by 2t and the curator does not know",
        paper=f"{PAPER}, Figure 5",
        columns={"panel": "shift t of either part [data units]"} | _SETTING,
        figure=_curves("panel", "R(KVH)"),
        runs=None,
        compute=figure_5,
    ),
)

FIGURE_8 = Reproduction(
    name="hybrid-figure-8",
    title="R(PWH) and r(PWH) for the salaries",
    paper=f"{PAPER}, Figure 8",
    columns=_PLANE,
    figure=_plane("improvement", log_value=True),
    runs=None,
    compute=figure_8,
    errata=(
        "Wrong: the text places r > 1500 at high epsilon and R < 0.5 at large c. They are at low epsilon and "
        "large c, and at high epsilon and small c. r is between 10 and 100 on a quarter of the plane (31 % "
        "with linear axes), not on the majority.",
    ),
)
