"""Verdicts on random draws.

By default draws are seeded, so a verdict is the same on every run; `DITHER_TEST_ENTROPY=os` runs the same
tests on the operating system's entropy. A seed is never changed to get a test to pass.

ALPHA is the false-alarm rate of every single verdict on fresh entropy: with V verdicts a run, one run in
1 / (V * ALPHA) alarms falsely (60 verdicts nightly: 0.02 a year). `Z` is the two-sided Normal quantile of
ALPHA.

SAMPLE_SIZE draws see, at that level:

- a scale error of 5 % (scale statistic: the standard error of the mean of |z| / b is 1 / sqrt(n) =
  0.45 %, so 5 % is 11 standard errors against Z = 4.9; power above 1 - 1e-9);
- duplicated draws (chi-square doubles: mean 2 df against a threshold near df + 4.9 sqrt(2 df)).

Every verdict stands beside a control that must fail it.
"""

from statistics import NormalDist

ALPHA = 1e-6
Z = -NormalDist().inv_cdf(ALPHA / 2)
SAMPLE_SIZE = 50_000
SMALLEST_SCALE_ERROR = 0.05
