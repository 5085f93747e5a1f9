"""What every spec validates itself with."""

from sweeps.paths import cut


def check(condition: bool, where: str, value: object, allowed: str) -> None:
    """Raise ValueError naming the field, its value and what is allowed, unless `condition` holds."""
    if not condition:
        raise ValueError(f"{where} is {cut(repr(value), 120)}: allowed is {allowed}")


def normalised(value: float) -> float:
    """The float that stands for `value`: no negative zero, and an int counts as its float."""
    return float(value) + 0.0 if value else 0.0
