"""A measured number as a table shows it: in the unit of its head, with its 95 % interval where it has one."""

from reports.model import Value
from reports.text import NOT_AVAILABLE, interval, number
from sweeps.statistics import Estimate


def shown(estimate: Estimate, digits: int = 2, scale: float = 1.0, *, best: bool = False) -> Value:
    """An estimate times `scale` (100: a share as a percentage) with its interval."""
    value = None if estimate.value is None else scale * estimate.value
    return Value(number(value, digits), interval(estimate, digits, scale), best=best)


def points(difference: Estimate) -> Value:
    """A difference of shares in percentage points, with its sign."""
    if difference.value is None:
        return Value(NOT_AVAILABLE)
    return Value(f"{100 * difference.value:+z.1f}", interval(difference, 1, 100))
