"""Isotonic regression: the sequence that never falls and is nearest to one, in squares.

It is that of `scipy.optimize.isotonic_regression`, step by step and to the last bit, which the tests compare,
without loading that package (see `app.estimators.roots`).

References:
    Busing, Journal of Statistical Software, Code Snippets 102(1), 2022, doi:10.18637/jss.v102.c01,
    algorithm 1: pools of adjacent violators, up and down.
"""

import numpy as np
from numpy.typing import NDArray


def rising(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest sequence that never falls.

    >>> rising(np.array([1.0, 3.0, 2.0, 4.0])).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    found = values.tolist()
    means, sizes = found[:1], [1] * len(found[:1])
    place = 1
    while place < len(found):
        mean, size = found[place], 1
        if means[-1] >= mean:
            former, before = means.pop(), sizes.pop()
            total = before * former + mean
            size += before
            mean = total / size
            while place + 1 < len(found) and mean >= found[place + 1]:
                place += 1
                total += found[place]
                size += 1
                mean = total / size
            while means and means[-1] >= mean:
                before = sizes.pop()
                total += before * means.pop()
                size += before
                mean = total / size
        means.append(mean)
        sizes.append(size)
        place += 1
    return np.repeat(means, sizes)
