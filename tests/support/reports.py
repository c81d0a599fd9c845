"""What reports of a mechanism can be, in one call."""

from dither.device.randomizers import LocalMechanism, ReportRange, randomizer


def report_range(mechanism: LocalMechanism, epsilon: int, delta: int = 0) -> ReportRange:
    """What a report can be [grid steps], of an epsilon [micro-epsilon] and a delta [1e-12]."""
    return randomizer(mechanism, delta).range(epsilon)


def report_scale(epsilon: int) -> float:
    """Scale of a Laplace report [grid steps]."""
    return randomizer(LocalMechanism.LAPLACE).noise(epsilon).laplace
