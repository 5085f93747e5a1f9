"""Numbers as people say them."""


def counted(count: int, noun: str) -> str:
    """A count with its noun: 1 worker, 2 workers."""
    return f"{count:,} {noun}{'s'[: count != 1]}"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
