"""The card of a set model for people: README.md beside its weights."""

from pathlib import Path

from sweeps.store import atomic_write
from workers.training.order_readme import recipe_lines, shown
from workers.training.sets_card import SetAccuracy, SetCard, SetSource

PUBLISHED = (256, 4)  # width and layers of the model of 5.1 M parameters


def write_readme(folder: Path, card: SetCard) -> None:
    """Write README.md into a checkpoint folder."""
    atomic_write(folder / "README.md", readme(card).encode())


def readme(card: SetCard) -> str:
    """The card as Markdown."""
    lines = [
        f"# Set model of SPOT-Sets for {', '.join(card.targets)}",
        "",
        "For threshold decoding: predicts which masked positions the target fills in its next step, and with which",
        "tokens, from the stale distribution, the target's hidden states and the path to a draft state, at any tau.",
        "Under the acceptance rule `exact` it decides how many forwards decoding takes, never what is decoded.",
        "",
        f"- {card.parameters:,} parameters, for blocks of {card.block_length} and targets of width {card.hidden},",
        f"  stored as float16: {card.layers} layers of width {card.width}; digest `{card.digest[:16]}`",
        *smaller_lines(card),
        *origin_lines(card),
        f"- {'fitted to' if card.base else 'trained on'} {card.traces} trajectories of threshold decoding",
        f"  ({card.steps_recorded:,} decoding steps); of {card.prompts} prompts {card.held_out_prompts} are held out;",
        f"  data digest `{card.data_digest[:16]}`",
        *recipe_lines(card),
        "  the same torch",
        "",
        "| role | target | weights | task | T | tau | prompts | of them judged |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(source_line(source) for source in card.sources),
        "",
        "## The next step on prompts that were not trained on",
        "",
        "Depth d: the known step and d - 1 true steps behind it are filled in; the next one is asked for. `step`: its",
        "positions (P > 1/2, at least one) and tokens are all the target's; `precision` and `recall` of its positions;",
        "`tokens` of the positions that the target fills. In the second row of a depth the stale distribution read by",
        "the threshold rule itself: what is still open and above tau, else the most confident position, with the stale",
        "draws. In brackets: 95 % intervals over prompts. At most",
        f"{card.judged_limit:,} examples, drawn by a fixed seed. Held-out loss: {card.held_out_loss:.3f} nats a step.",
        "",
        *(line for warning in card.warnings() for line in (f"**Mind: {warning}.**", "")),
    ]
    for group in dict.fromkeys(row.group for row in card.accuracy):
        lines += [f"### {name_of(group)}", ""]
        lines += ["| depth | n | prompts | reader | step | precision | recall | tokens |"]
        lines += ["| --- | --- | --- | --- | --- | --- | --- | --- |"]
        for row in card.accuracy:
            if row.group == group and row.depth in card.shown_depths and row.model.exact.n:
                lines += depth_lines(row)
        lines.append("")
    return "\n".join(lines)


def smaller_lines(card: SetCard) -> tuple[str, ...]:
    """That a model is smaller than the published one, where it is."""
    width, layers = PUBLISHED
    if card.width >= width and card.layers >= layers:
        return ()
    default = f"{layers} layers of width {width} (5.1 M parameters for a target of width 4096)"
    return (f"- smaller than the default, {default}",)


def origin_lines(card: SetCard) -> tuple[str, ...]:
    """Which model a calibrated one was made from."""
    if not card.base:
        return ()
    trained = ", ".join(dict.fromkeys(source.target for source in card.sources if source.role == "trained on"))
    fitted = ", ".join(dict.fromkeys(source.target for source in card.sources if source.role == "calibrated on"))
    return (
        f"- calibrated: the input layer that reads the target's hidden states and embeddings ({card.fitted:,}",
        f"  parameters) was fitted to {fitted}; all other weights are those of the set model `{card.base[:16]}`,",
        f"  which was trained on {trained}",
    )


def source_line(source: SetSource) -> str:
    """A source as a row of the table."""
    of = f"{source.role} | {source.target} | `{source.target_digest[:16]}` | {source.task} | {source.temperature:g}"
    return f"| {of} | {source.tau:g} | {source.prompts} | {source.judged} |"


def depth_lines(row: SetAccuracy) -> list[str]:
    """An accuracy as two rows of a table."""
    lines = []
    for name, reading in (("set model", row.model), ("stale", row.stale)):
        shares = (reading.exact, reading.precision, reading.recall, reading.tokens)
        numbers = f"{row.depth} | {row.model.exact.n:,} | {row.prompts} | {name}"
        lines.append(f"| {numbers} | {shown(shares[0])} | {' | '.join(map(bare, shares[1:]))} |")
    return lines


def bare(share: object) -> str:
    """A share in percent without its interval."""
    value = getattr(share, "value", None)
    return "-" if value is None else f"{value:.1%}"


def name_of(group: tuple[str, float | None, float | None]) -> str:
    """What a group is called."""
    task, temperature, tau = group
    if tau is not None:
        return f"tau = {tau:g}"
    return f"{task} at T = {temperature:g}" if temperature is not None else "All"
