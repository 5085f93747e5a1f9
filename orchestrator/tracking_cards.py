"""Cards of trained models as the mirror holds them, an order model's or a set model's: what each says in numbers."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from sweeps.cell import digest_of
from workers.models.named import KINDS, kind_of
from workers.training import order_card, sets_card
from workers.training.order_card import OrderCard, Role, Share
from workers.training.order_log import STARTS, TrainingStart
from workers.training.sets_card import SetAccuracy, SetCard

PREFIX: dict[Role, str] = {"trained on": "held_out", "out of domain": "out_of_domain"}
Card = OrderCard | SetCard


def read_card(folder: Path) -> Card:
    """The card of an order model or a set model. Raises ValueError naming the file."""
    return sets_card.read_card(folder) if kind_of(folder) == KINDS["set model"] else order_card.read_card(folder)


def start_of(card: Card) -> TrainingStart:
    """The first line that the log of a card's training had."""
    names = ("recipe", "data_digest", "test_digest", "block_length", "sources", "threads", "torch_version")
    start = STARTS["spot train sets" if isinstance(card, SetCard) else "spot train order"]
    return start(**{name: getattr(card, name) for name in names})


def final_values(card: Card) -> dict[str, float | None]:
    """The accuracies of a card."""
    values: dict[str, float | None] = {}
    for row in card.accuracy:
        at = "" if row.temperature is None else f"T{row.temperature:g}"
        if isinstance(row, SetAccuracy):
            tau = "" if row.tau is None else f"tau{row.tau:g}"
            name = ".".join(part for part in ("final", PREFIX["trained on"], row.task, at, tau) if part)
            for reader, reading in (("", row.model), (".stale", row.stale)):
                for what in ("exact", "precision", "recall", "tokens"):
                    values |= by_depth(f"{name}.{what}{reader}", [(row.depth, getattr(reading, what))])
        else:
            name = ".".join(part for part in (PREFIX[row.role], row.target, row.task, at) if part)
            values |= by_depth(f"final.{name}", [(row.depth, row.order_model)])
            values |= by_depth(f"final.{name}.stale_confidence", [(row.depth, row.stale_confidence)])
    return values


def by_depth(name: str, shares: Iterable[tuple[int, Share]]) -> dict[str, float | None]:
    """Accuracies under one name, where there was anything to judge."""
    return {f"{name}.depth{depth}": share.value for depth, share in shares if share.n}


def result_digest(card: Card) -> str:
    """Of everything the card says."""
    return digest_of([msgspec.to_builtins(card)])
