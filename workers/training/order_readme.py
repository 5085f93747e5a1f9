"""The card of an order model for people: README.md beside its weights."""

from collections.abc import Iterable
from pathlib import Path

from sweeps.store import atomic_write
from workers.training.order_card import DepthAccuracy, OrderCard, Role, Share, Source
from workers.training.sets_card import SetCard

HEADINGS: dict[Role, str] = {
    "trained on": "Held-out prompts of what it was trained on",
    "out of domain": "Out of domain: nothing of it was trained on",
}


def write_readme(folder: Path, card: OrderCard) -> None:
    """Write README.md into a checkpoint folder."""
    atomic_write(folder / "README.md", readme(card).encode())


def readme(card: OrderCard) -> str:
    """The card as Markdown."""
    lines = [
        f"# Order model of SPOT for {', '.join(card.targets)}",
        "",
        "Predicts which masked position the target fills next, from the stale distribution and the path to a draft",
        "state. It decides how many forwards decoding takes, never what is decoded: a wrong draft is refused.",
        "",
        f"- {card.parameters:,} parameters for blocks of {card.block_length}, stored as float16;",
        f"  digest `{card.digest[:16]}`",
        f"- trained on {card.traces} draft-free trajectories ({card.steps_recorded:,} decoding steps) of",
        f"  {card.prompts} prompts, {card.held_out_prompts} of them held out; data digest `{card.data_digest[:16]}`",
        *recipe_lines(card),
        "  the same torch; with others the last bits of sums differ, and then all weights a little",
        "",
        "| role | target | weights | task | T | prompts | of them judged |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(source_line(source) for source in card.sources),
        "",
        "## Next-commit accuracy on prompts that were not trained on",
        "",
        "Depth d: the known commit and d - 1 true commits behind it are filled in; the position of the next one is",
        "asked for. States with a single open position are not counted. Beside it: always naming the most confident",
        f"stale position that is still open. In brackets: 95 % intervals{unit(card)}.",
        *limit_lines(card),
        f"Held-out loss: {nats(card.held_out_loss)}; out of domain: {nats(card.out_of_domain_loss)}.",
        "",
        *(line for warning in card.warnings() for line in (f"**Mind: {warning}.**", "")),
    ]
    for role, heading in HEADINGS.items():
        rows = [row for row in card.accuracy if row.role == role]
        if rows:
            lines += [f"### {heading}", ""]
        for group in dict.fromkeys(row.group for row in rows):
            lines += [f"#### {name_of(rows, group)}", ""]
            lines += ["| depth | n | prompts | order model | stale confidence |", "| --- | --- | --- | --- | --- |"]
            lines += [depth_line(row) for row in rows if row.group == group]
            lines.append("")
    return "\n".join(lines)


def recipe_lines(card: OrderCard | SetCard) -> tuple[str, ...]:
    """How a model was trained; the sentence goes on with what else must be the same for the same weights."""
    recipe = card.recipe
    return (
        f"- recipe: {recipe.steps} training steps of {recipe.batch} examples, AdamW at {recipe.rate:g},",
        f"  seed {recipe.seed} (all of it in `card.json`)",
        f"- {card.seconds:.0f} s on {card.threads} CPU thread{'s' * (card.threads != 1)}, torch {card.torch_version}:",
        "  the same recipe and trajectories give the same weights on the same kind of machine with as many threads and",
    )


def source_line(source: Source) -> str:
    """A source as a row of the table."""
    counts = " | ".join("?" if number is None else f"{number}" for number in (source.prompts, source.judged))
    of = f"{source.role} | {source.target} | `{source.target_digest[:16]}` | {source.task} | {source.temperature:g}"
    return f"| {of} | {counts} |"


def depth_line(row: DepthAccuracy) -> str:
    """An accuracy as a row of a table."""
    prompts = "?" if row.prompts is None else f"{row.prompts}"
    both = f"{shown(row.order_model)} | {shown(row.stale_confidence)}"
    return f"| {row.depth} | {row.order_model.n:,} | {prompts} | {both} |"


def unit(card: OrderCard) -> str:
    """What the intervals of a card take as their unit."""
    if not card.clustered:
        return " (Wilson, as if commits were independent)"
    return (
        "\nover prompts, since commits of one prompt are not independent (none from a single prompt); n counts commits"
    )


def limit_lines(card: OrderCard) -> tuple[str, ...]:
    """What a card says of commits that were not asked for."""
    if card.judged_limit is None:
        return ()
    return (f"Of each target, task and temperature at most {card.judged_limit:,} commits, drawn by a fixed seed.",)


def name_of(rows: Iterable[DepthAccuracy], group: tuple[Role, str, str, float | None]) -> str:
    """What a group is called among `rows`; the target is named where there are several."""
    _, target, task, temperature = group
    several = len({row.target for row in rows if row.target}) > 1
    at = "" if temperature is None else f" at T = {temperature:g}"
    return f"{task or 'All'}{at}{f' of {target}' if target and (several or not task) else ''}"


def shown(share: Share) -> str:
    """A share in percent with its interval where it has one, or a dash."""
    if share.value is None:
        return "-"
    if share.low is None or share.high is None:
        return f"{share.value:.1%}"
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"


def nats(loss: float | None) -> str:
    """A loss, or a dash."""
    return "-" if loss is None else f"{loss:.3f} nats"
