"""A decoded prompt on a console: block by block, which position was committed in which round.

Rounds are target forwards, counted from 1 over the whole generation. Every colour has its number beside it, and the
same facts follow as text, so nothing depends on colours. Generated text never controls the terminal.
"""

from collections.abc import Iterator
from dataclasses import asdict
from math import isfinite
from typing import Any

from rich.console import Console
from rich.text import Text

from sweeps.cell import Cell
from sweeps.claims import Claim, claim_of, in_words
from workers.decode_one import Decoded, GridBlock, GridCell
from workers.decoding.tally import Generation

COLUMNS = 8  # positions in a row of the grid
WIDTH = 9  # characters of a token that are shown
EARLY, LATE = (33, 102, 172), (178, 24, 43)  # blue to red, both readable under white text
BOUND = "a bound, no method: the oracle was told the draft-free trajectory, whose forwards are not counted"
PROMPT = "  -"  # stands for the round of a position that the prompt gave


def show(console: Console, decoded: Decoded, cell: Cell) -> None:
    """Print the text, the counts, what may be claimed, and every block of a prompt; or why it has none."""
    if decoded.generation is None:
        reason = decoded.failure.message if decoded.failure else "no generation"
        console.print(Text(f"prompt {decoded.index}: {harmless(reason)}"), soft_wrap=True)
        return
    console.print(Text(harmless(decoded.text)), soft_wrap=True)
    console.print(Text(counts(decoded.generation), style="italic"), soft_wrap=True)
    if decoded.rule != "standard":
        steps = decoded.generation.steps
        whose = "steps" if lossy(cell) else "steps of the target"
        largest = f"{len(steps)} {whose}, the largest of {max(steps)} positions"
        console.print(Text(f"commit rule {decoded.rule}: {largest}", style="italic"), soft_wrap=True)
    if (lenient := lossy(cell)) is not None:
        console.print(Text(lenient, style="bold"), soft_wrap=True)
    console.print(Text(claim(cell), style="italic"), soft_wrap=True)
    if decoded.bound:
        console.print(Text(BOUND, style="italic"), soft_wrap=True)
    for block in decoded.grid:
        rounds = [cell.round + 1 for cell in block.cells if cell.round is not None]
        title = (
            f"positions {block.start} to {block.start + len(block.cells) - 1}: rounds {min(rounds)} to {max(rounds)}"
        )
        console.print(Text(f"\n{title}", style="bold"))
        for row in grid(block, min(rounds), max(rounds)):
            console.print(row)
        for line in rounds_as_text(block):
            console.print(Text(line), soft_wrap=True)


def as_json(decoded: Decoded, cell: Cell) -> dict[str, Any]:
    """What one JSON line says. An infinite margin (no rival) is null, as JSON has no infinity."""
    made_by = {"index": decoded.index, "cell": cell_as_json(cell)}
    if decoded.generation is None:
        return {**made_by, "error": decoded.failure.message if decoded.failure else "no generation"}
    row = {**made_by, "prompt_ids": decoded.prompt_ids, "text": decoded.text, "bound": decoded.bound}
    row |= {"rule": decoded.rule}
    drafter = cell.drafter
    row |= {"acceptance": drafter.acceptance, "max_commit": drafter.max_commit}
    row |= {"cross_block": drafter.cross_block, "refresh": drafter.refresh}
    row |= {"cache": cell.target.cache, "exact_cache": cell.target.exact_cache, "claim": claim_of(cell).value}
    row["claim_in_words"] = in_words(cell, claim_of(cell))
    row |= asdict(decoded.generation)
    row["margins"] = [margin if isfinite(margin) else None for margin in decoded.generation.margins]
    return row


def cell_as_json(cell: Cell) -> dict[str, Any]:
    """Which cell made it: its id and every field of its specs under the spec's own name. Equal ids, equal work.

    The task is left out: a prompt of the command line has none.
    """
    return {
        "cell_id": cell.cell_id,
        "target": asdict(cell.target),
        "decode": asdict(cell.decode),
        "drafter": asdict(cell.drafter),
        "seed": cell.seed,
    }


def counts(generation: Generation) -> str:
    """What a generation cost, in one line."""
    counters = generation.counters
    return (
        f"{generation.prompt_tokens} prompt tokens, {len(generation.output_ids)} generated, "
        f"{generation.tokens_kept} kept ({generation.finish_reason}); {counters.nfe} forwards, "
        f"{sum(counters.accepted)} drafts accepted of {sum(counters.drafted)} verified, {generation.seconds:.2f} s"
    )


def claim(cell: Cell) -> str:
    """The kind of cache and what may be claimed under it."""
    cache = f"cache {cell.target.cache}"
    if cell.target.exact_cache:
        return f"{cache}; claim: {claim_of(cell).value}"
    return f"{cache}, approximate (--cache none decodes without); claim: {in_words(cell, claim_of(cell))}"


def lossy(cell: Cell) -> str | None:
    """A warning that the output may be another one than the target's own, and by which rule; None where it may not."""
    if claim_of(cell) is not Claim.LOSSY:
        return None
    drafter, most = cell.drafter, ", of all paths the one with the most commits" if cell.drafter.max_commit else ""
    accepted = f"steps were accepted by the rule {drafter.acceptance}{most}"
    return f"LOSSY: {accepted}: the output may be another than draft-free decoding's"


def grid(block: GridBlock, first: int, last: int) -> Iterator[Text]:
    """Rows of `COLUMNS` positions: round and token, coloured from the block's first round to its last."""
    for start in range(0, len(block.cells), COLUMNS):
        line = Text()
        for cell in block.cells[start : start + COLUMNS]:
            line.append_text(_shown(cell, first, last))
            line.append(" ")
        yield line


def rounds_as_text(block: GridBlock) -> Iterator[str]:
    """One line a round: the positions committed in it, in order, and their tokens."""
    commits = sorted((cell.commit, place, cell) for place, cell in enumerate(block.cells) if cell.commit is not None)
    for number in sorted({cell.round for _, _, cell in commits if cell.round is not None}):
        places = "  ".join(f"{block.start + at} {cell.text!r}" for _, at, cell in commits if cell.round == number)
        yield f"  round {number + 1}: {places}"


def colour(number: int, first: int, last: int) -> str:
    """The colour of a round between the block's first and last."""
    share = (number - first) / (last - first) if last > first else 0.0
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(EARLY, LATE, strict=True))
    return f"rgb({red},{green},{blue})"


def harmless(text: str) -> str:
    """Text without characters that a terminal would act on, line ends and tabs apart."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _shown(cell: GridCell, first: int, last: int) -> Text:
    """One position: its round and the token in exactly WIDTH characters; struck through behind the first stop id."""
    token = cell.text.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣")
    token = "".join(c if c.isprintable() else "·" for c in token)[:WIDTH].ljust(WIDTH)
    if cell.round is None:
        return Text(f"{PROMPT} {token}", style="dim")
    style = f"white on {colour(cell.round + 1, first, last)}" + ("" if cell.kept else " strike")
    return Text(f"{cell.round + 1:>3} {token}", style=style)
