"""The card of an order model: how it was made and what it is worth, for people (README.md) and programs (card.json)."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from workers.training.order_accuracy import DepthAccuracy, Share
from workers.training.order_recipe import OrderRecipe


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCard:
    """Everything on the card. `seconds` is the wall time of training; accuracies are those of the stored weights."""

    digest: str
    target: str
    target_digest: str
    block_length: int
    parameters: int
    recipe: OrderRecipe
    seconds: float
    threads: int
    data_digest: str
    traces: int
    steps_recorded: int
    prompts: int
    held_out_prompts: int
    sources: tuple[tuple[str, float], ...]
    held_out_loss: float
    accuracy: tuple[DepthAccuracy, ...]


def write_card(path: Path, card: OrderCard) -> None:
    """Write README.md and card.json into the directory `path`."""
    (path / "card.json").write_bytes(msgspec.json.format(msgspec.json.encode(card), indent=2) + b"\n")
    (path / "README.md").write_text(readme(card), encoding="utf-8")


def readme(card: OrderCard) -> str:
    """The card as Markdown."""
    sources = ", ".join(f"{task} at T = {temperature:g}" for task, temperature in card.sources)
    lines = [
        f"# Order model of SPOT for {card.target}",
        "",
        "Predicts which masked position the target fills next, from the stale distribution and the path to a draft",
        "state. It decides how many forwards decoding takes, never what is decoded: a wrong draft is refused.",
        "",
        f"- target: `{card.target}`, weights `{card.target_digest[:16]}`, block length {card.block_length}",
        f"- {card.parameters:,} parameters, stored as float16; digest `{card.digest[:16]}`",
        f"- trajectories: {card.traces} draft-free ones ({sources}), {card.steps_recorded:,} steps,",
        f"  {card.prompts} prompts, {card.held_out_prompts} of them held out; data digest `{card.data_digest[:16]}`",
        f"- recipe: {card.recipe.steps} steps of {card.recipe.batch} examples, AdamW at {card.recipe.rate:g}, seed",
        f"  {card.recipe.seed}; {card.seconds:.0f} s on {card.threads} CPU threads (all of it in `card.json`)",
        "",
        "## Held-out next-commit accuracy",
        "",
        "Depth d: the known commit and d - 1 true commits behind it are filled in; the position of the next one is",
        "asked for. States with a single open position are not counted. Beside it: always naming the most confident",
        "stale position that is still open. In brackets: 95 % Wilson intervals.",
        f"Held-out loss: {card.held_out_loss:.3f} nats.",
        "",
    ]
    for task, temperature in dict.fromkeys((row.task, row.temperature) for row in card.accuracy):
        rows = [row for row in card.accuracy if (row.task, row.temperature) == (task, temperature)]
        lines += [f"### {task} at T = {temperature:g}" if task else "### All", ""]
        lines += ["| depth | n | order model | stale confidence |", "| --- | --- | --- | --- |"]
        lines += [
            f"| {row.depth} | {row.order_model.n:,} | {shown(row.order_model)} | {shown(row.stale_confidence)} |"
            for row in rows
        ]
        lines.append("")
    return "\n".join(lines)


def shown(share: Share) -> str:
    """A share in percent with its interval, or a dash."""
    if share.value is None or share.low is None or share.high is None:
        return "-"
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"
