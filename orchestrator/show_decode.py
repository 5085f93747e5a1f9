"""A decoded prompt on a console: block by block, which position was committed in which round.

Rounds are target forwards, counted from 1 over the whole generation. Every colour has its number beside it, and the
same facts follow as text, so nothing depends on colours. Generated text never controls the terminal.
"""

from collections.abc import Callable, Iterator

from rich.console import Console
from rich.text import Text

from workers.decoding.tally import Generation

COLUMNS = 8  # positions in a row of the grid
CELL = 9  # characters of a token that are shown
EARLY, LATE = (33, 102, 172), (178, 24, 43)  # blue to red, both readable under white text


def show_generation(
    console: Console, generation: Generation, *, block_length: int, piece: Callable[[int], str]
) -> None:
    """Print text, counts and every block. `piece` gives the text of one token id."""
    counters = generation.counters
    console.print(
        Text(
            f"{generation.prompt_tokens} prompt tokens, {len(generation.output_ids)} generated, "
            f"{generation.tokens_kept} kept ({generation.finish_reason}); {counters.nfe} forwards, "
            f"{sum(counters.accepted)} drafts accepted of {sum(counters.drafted)} verified, "
            f"{generation.seconds:.2f} s"
        )
    )
    for start, rounds in block_rounds(generation, block_length):
        console.print()
        first, last = min(rounds.values()), max(rounds.values())
        console.print(Text(f"positions {start} to {start + block_length - 1}: rounds {first} to {last}", style="bold"))
        tokens = {position: piece(generation.output_ids[position - generation.prompt_tokens]) for position in rounds}
        for row in grid(start, rounds, tokens, block_length):
            console.print(row)
        for line in rounds_as_text(rounds, tokens):
            console.print(Text(line), soft_wrap=True)


def block_rounds(generation: Generation, block_length: int) -> Iterator[tuple[int, dict[int, int]]]:
    """For each block its first absolute position, and the round (from 1) of every position committed in it."""
    blocks: dict[int, dict[int, int]] = {}
    for index, number in zip(generation.order, generation.rounds, strict=True):
        position = generation.prompt_tokens + index
        blocks.setdefault(position // block_length * block_length, {})[position] = number + 1
    yield from sorted(blocks.items())


def grid(start: int, rounds: dict[int, int], tokens: dict[int, str], block_length: int) -> Iterator[Text]:
    """Rows of `COLUMNS` positions: round and token, coloured from the block's first round to its last."""
    first, last = min(rounds.values()), max(rounds.values())
    for row in range(start, start + block_length, COLUMNS):
        line = Text()
        for position in range(row, min(row + COLUMNS, start + block_length)):
            number = rounds.get(position)
            if number is None:
                line.append(" " * (CELL + 5), style="dim")
                continue
            line.append(f"{number:>3} {_fitted(tokens[position])}", style=f"white on {colour(number, first, last)}")
            line.append(" ")
        yield line


def rounds_as_text(rounds: dict[int, int], tokens: dict[int, str]) -> Iterator[str]:
    """One line a round: the positions committed in it and their tokens."""
    for number in sorted(set(rounds.values())):
        places = [position for position, other in rounds.items() if other == number]
        commits = "  ".join(f"{position} {tokens[position]!r}" for position in places)
        yield f"  round {number}: {commits}"


def colour(number: int, first: int, last: int) -> str:
    """The colour of a round between the block's first and last."""
    share = (number - first) / (last - first) if last > first else 0.0
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(EARLY, LATE, strict=True))
    return f"rgb({red},{green},{blue})"


def _fitted(token: str) -> str:
    """A token's text in exactly CELL characters, its spaces and line ends visible."""
    shown = token.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣")
    return "".join(c if c.isprintable() else "·" for c in shown)[:CELL].ljust(CELL)


def harmless(text: str) -> str:
    """Text without characters that a terminal would act on, line ends and tabs apart."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
