"""`spot measure`: what a machine costs, as files that sweeps may name."""

from pathlib import Path
from typing import Any

import click

from orchestrator.commands.shared import UserPath, say_lengths, target_option


@click.group()
def measure() -> None:
    """Measure what work costs on this machine."""


@measure.command()
@target_option
@click.option("--out", type=UserPath(), required=True, help="The file to write (JSON).")
@click.option("--checkpoint", default="", help="The order model, where the target has none of its own.")
@click.option("--dtype", default="", help="What the target computes in (default: its own).")
@click.option("--cache", default="", help="Kind of cache, as its family can (default: the first).")
@click.option("--device", default="cpu", show_default=True, help="A torch device.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="As a worker of a sweep has.")
@click.option("--block-length", type=click.IntRange(1), help="Positions of a block (default: the target's own).")
@click.option("--states", help="Numbers of states, as 1,3,9,21 (default: 11 of them from 1 to 33).")
@click.option("--prefixes", help="Prefix lengths, as 0,64,256 (default: up to the target's last block).")
@click.option("--repeats", type=click.IntRange(3), default=15, show_default=True, help="Timings of each.")
def cost(out: Path, states: str | None, prefixes: str | None, **options: Any) -> None:
    """Time target forwards by block states and prefix length, and the SPOT drafter by budget.

    A drafter's option `cost` may name the file: it then verifies, each round, as many drafts as are worth it. Measure
    on the machine that decodes, with nothing else running.
    """
    from orchestrator.measure import CostRequest, measure_cost

    for name, text in (("states", states), ("prefixes", prefixes)):
        if text:
            options[name] = numbers(name, text)
    request = CostRequest(**options)
    say_lengths((request.target,), request.block_length)
    last = ""

    def show(what: str, done: int, total: int) -> None:
        nonlocal last
        line = f"{what}: {10 * done // total * 10} %"
        if line != last:
            click.echo(line, err=True)
            last = line

    curve, digest = measure_cost(request, out, show)
    row = curve.forward_seconds(0)
    for count in curve.states:
        name = "state: " if count == 1 else "states:"
        click.echo(
            f"{count:>4} {name} {1e3 * row[count - 1]:.2f} ms, {row[count - 1] / row[0]:.2f} times the root alone"
        )
    if not curve.drafters:
        click.echo(f"no order model for {curve.target}: the drafter's time counts as nothing", err=True)
    click.echo(f"{out}: digest {digest[:12]}")


def numbers(name: str, text: str) -> tuple[int, ...]:
    """A comma list of whole numbers. Raises ValueError naming the option."""
    from sweeps.paths import cut

    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--{name} is {cut(text)!r}: allowed is a list as 1,2,3") from None
