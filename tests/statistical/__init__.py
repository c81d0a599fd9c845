"""Verdicts on random draws.

By default draws are seeded, so a verdict is the same on every run; `DITHER_TEST_ENTROPY=os` runs the same
tests on the operating system's entropy, and `make test` a quarter of the tests of noise, chosen by the commit
(`tests.support.noise`). A seed is never changed to get a test to pass.

ALPHA is the false-alarm rate of every single verdict on fresh entropy; where a verdict takes the limit law of
a sum, at most ten times that. `Z` is the two-sided Normal quantile of ALPHA. A run of `make test` alarms
falsely with a probability below 1e-5:

- a quarter of fewer than 200 verdicts here: 50 * 1e-7 = 5e-6 were all of them limit laws at their worst;
- a quarter of the controls, which alarm where they miss: 3e-7 (2e-7 for each of the weakest six, below);
- `test_production_noise`, fresh on every run: 1e-6;
- `test_lost_drafts`, fresh on every run, a limit law: 1e-7;
- the two exact verdicts of the answer grid in `tests/system`, fresh on every run at a level of 1e-6: 2e-6.

SAMPLE_SIZE draws see, at that level:

- a scale error of 5 % (scale statistic: the standard error of the mean of |z| / b is 1 / sqrt(n) =
  0.45 %, so 5 % is 11 standard errors against Z = 5.7; it is missed with probability 1e-7);
- draws that come four times (chi-square is four times as large: missed with probability 2e-7 with 120 cells);
- draws that equal the one before in one pair of a hundred too often (exact binomial, 25,000 pairs).

Every verdict stands beside a control that must fail it.
"""

from statistics import NormalDist

ALPHA = 1e-8
Z = -NormalDist().inv_cdf(ALPHA / 2)
SAMPLE_SIZE = 50_000
SMALLEST_SCALE_ERROR = 0.05
