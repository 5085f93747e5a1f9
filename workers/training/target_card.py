"""The card of a tiny target: how it was made and what it can do, for people (README.md) and programs (card.json)."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from sweeps.statistics import Estimate
from workers.training.layouts import LAYOUTS
from workers.training.target_recipes import TargetRecipe


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Draft-free decoding at T = 0 of held-out prompts of one task. Means are per prompt, shares per commit.

    The three shares leave out commits with one open position. `leftmost`: the leftmost open position was filled.
    `stale_position`, `stale_token`: what was filled is the most confident position, and there the best token, of the
    forward before (in the same block). `cache` is the target's kind of cache.
    """

    task: str
    data_digest: str
    seed: int
    correct: Estimate
    nfe: float
    tokens_kept: float
    prefill_positions: float
    commits: int
    leftmost: float
    stale_position: float
    stale_token: float
    cache: str = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCard:
    """Everything on the card. `loss` is that of the last training steps in nats, `seconds` the training's wall time."""

    name: str
    weight_digest: str
    parameters: int
    vocab_size: int
    recipe: TargetRecipe
    loss: float
    seconds: float
    threads: int
    torch_version: str
    max_new_tokens: int
    held_out: tuple[HeldOut, ...]


def write_card(folder: Path, card: TargetCard) -> None:
    """Write README.md and card.json into a checkpoint folder."""
    (folder / "card.json").write_bytes(msgspec.json.format(msgspec.json.encode(card), indent=2) + b"\n")
    (folder / "README.md").write_text(readme(card), encoding="utf-8")


def readme(card: TargetCard) -> str:
    """The card as Markdown."""
    recipe, layout = card.recipe, LAYOUTS[card.recipe.family]
    whole = f", {recipe.whole_steps} on whole canvases" if recipe.whole_steps else ""
    lines = [
        f"# {card.name}",
        "",
        f"A diffusion language model of {card.parameters:,} parameters in the published layout of {layout.name}",
        f"({layout.about}), for trying and testing decoders on a CPU. It answers",
        "generated word problems and writes generated five-line Python functions, and nothing else.",
        "",
        f"- blocks of {recipe.block_length} positions; {recipe.layers} layers, hidden {recipe.hidden},",
        f"  {recipe.heads} heads over {recipe.kv_heads}, tied head; byte-level BPE with {card.vocab_size} ids and",
        "  single digits",
        f"- weights stored as bfloat16, evaluated in float32; digest `{card.weight_digest[:16]}`",
        f"- recipe: {recipe.warm_start} steps with blocks of one position, {recipe.steps} of block diffusion{whole},",
        f"  batch {recipe.batch}, seed {recipe.seed}; {card.seconds:.0f} s on {card.threads} CPU threads, last loss",
        f"  {card.loss:.3f} nats (all of it in `card.json`)",
        "",
        "## Held-out prompts",
        "",
        f"Draft-free decoding at T = 0, at most {card.max_new_tokens} new tokens, no drafts: one commit a forward.",
        "In brackets: 95 % Wilson intervals. Leftmost: the commit fills the leftmost open position. Stale position",
        "and token: the commit is what the forward before held most likely. Cache: its kind; `prefix` and `dual` are",
        "approximate.",
        "",
        "| task | cache | prompts | correct | forwards | tokens kept | leftmost | stale position | stale token |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row.task} | {row.cache} | {row.correct.n} | {shown(row.correct)} | {row.nfe:.1f} | {row.tokens_kept:.1f} "
        f"| {row.leftmost:.1%} | {row.stale_position:.1%} | {row.stale_token:.1%} |"
        for row in card.held_out
    ]
    lines += ["", "Prompts of the splits `train` and `test` never share a problem, whatever the wording.", ""]
    return "\n".join(lines)


def shown(share: Estimate) -> str:
    """A share in percent with its interval, or a dash."""
    if share.value is None or share.low is None or share.high is None:
        return "-"
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"
