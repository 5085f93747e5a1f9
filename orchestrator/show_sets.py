"""What a trained set model is worth, for people: how often it foresees the next step, beside the stale distribution."""

from typing import TYPE_CHECKING

from orchestrator.show_training import percent

if TYPE_CHECKING:
    from rich.table import Table

    from workers.training.sets_card import SetCard


def foreseen_table(card: "SetCard") -> "Table":
    """Next steps foreseen whole by the model, and by the stale distribution in brackets, for each group."""
    from rich.table import Table
    from rich.text import Text

    title = "next steps foreseen on prompts not trained on, % (stale distribution), by drafted step"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("task", "T", "tau"):
        table.add_column(name, no_wrap=True)
    depths = card.shown_depths
    for depth in depths:
        table.add_column(str(depth), no_wrap=True, justify="right")
    for group in dict.fromkeys(row.group for row in card.accuracy):
        rows = {row.depth: row for row in card.accuracy if row.group == group}
        task, temperature, tau = group
        texts = [task or "all", *("all" if value is None else f"{value:g}" for value in (temperature, tau))]
        texts += [f"{percent(rows[depth].model.exact)} ({percent(rows[depth].stale.exact)})" for depth in depths]
        table.add_row(*(Text(text) for text in texts))
    return table
