"""What a trained or calibrated file says of the target that it was made with.

Its name is for people; whether it is the target at hand is asked by the digest of the weights.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeOn:
    """A target that something was made with: its name, the digest of its weights, its dtype ("": not known)."""

    target: str
    digest: str
    dtype: str = ""
