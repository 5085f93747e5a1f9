"""The card of a draft graph, for people (README.md); everything on it is in the graph's own file."""

from pathlib import Path

from sweeps.store import atomic_write
from workers.models.draft_graph import ROOT, DraftGraph, HeldOutRow

SHOWN = 12  # nodes listed
DRAFT_FREE = {
    "standard": "draft-free decoding takes one a token",
    "threshold": "of those that draft-free decoding by the same rule takes",
}


def write_card(folder: Path, graph: DraftGraph) -> None:
    """Write README.md into the directory of a graph."""
    atomic_write(folder / "README.md", readme(graph).encode())


def readme(graph: DraftGraph) -> str:
    """The card as Markdown."""
    several = sum(_parents(graph, index) > 1 for index in range(len(graph.nodes)))
    lines = [
        f"# Draft graph of Spiffy for {graph.target}",
        "",
        "Which sets of (position rank, token rank) pairs to draft beside a root, ranks taken at its stale distribution",
        "(arXiv 2509.18085). It decides how many forwards decoding takes, never what is decoded.",
        "",
        f"- target: `{graph.target}`, weights `{graph.target_digest[:16]}`, {graph.dtype}",
        *(
            []
            if graph.tau is None
            else [f"- commit rule: threshold, tau {graph.tau}; a node is one or more whole steps"]
        ),
        f"- {len(graph.nodes)} nodes (asked for: {graph.budget_max}), {several} of them with several parents",
        f"- blocks of {graph.block_length} positions; the first D nodes are the graph of budget D",
        f"- counted: {graph.steps:,} steps of {graph.traces} draft-free trajectories",
        f"- at most {graph.max_new_tokens} new tokens, seed {graph.seed}; data digest `{graph.data_digest[:16]}`",
        f"- digest `{graph.digest[:16]}`",
        *(
            f"- {source.task} ({source.split}) at T = {source.temperature:g}: {source.prompts} prompts, "
            f"{source.held_out} of them held out"
            for source in graph.sources
        ),
        "",
        "## Nodes",
        "",
        "In the order in which they were chosen. Count: steps at which exactly these pairs were the next commits, in",
        "any order. Gain: drafts accepted more, over all counted steps, than without this node.",
        "",
        "| D | position.token ranks | parents | count | gain |",
        "| --- | --- | --- | --- | --- |",
    ]
    for index, node in enumerate(graph.nodes[:SHOWN]):
        pairs = " ".join(f"{position}.{token}" for position, token in node.pairs)
        lines.append(f"| {index + 1} | {pairs} | {_parents(graph, index)} | {node.count:,} | {node.gain:,} |")
    if len(graph.nodes) > SHOWN:
        lines.append(f"| ... | {len(graph.nodes) - SHOWN} more in `graph.json` | | | |")
    lines += [
        "",
        "## Held-out prompts",
        "",
        "Accepted: drafts a round would accept, mean over all steps that have a choice. Forwards: of decoding the same",
        f"prompts, replayed from their trajectories; {DRAFT_FREE[graph.commit]}.",
        "",
    ]
    for group in dict.fromkeys((row.task, row.temperature) for row in graph.held_out):
        lines += [f"### {group[0]} at T = {group[1]:g}", "", "| D | accepted | forwards | tokens a forward |"]
        lines.append("| --- | --- | --- | --- |")
        lines += [_row(row) for row in graph.held_out if (row.task, row.temperature) == group]
        lines.append("")
    return "\n".join(lines)


def _parents(graph: DraftGraph, index: int) -> int:
    """How many parents a node has in the whole graph."""
    known = {ROOT} | {node.key for node in graph.nodes}
    return len(graph.parents(graph.nodes[index].key, known))


def _row(row: HeldOutRow) -> str:
    """One budget of a held-out table."""
    mean = f"{row.accepted / row.steps:.2f}" if row.steps else "-"
    most = row.tokens if row.draft_free is None else row.draft_free
    return f"| {row.budget} | {mean} | {row.forwards:,} of {most:,} | {row.tokens / row.forwards:.2f} |"
