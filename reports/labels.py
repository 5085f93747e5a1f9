"""Short names for cells: what they share (their setting), what is compared (their method), and in what order.

An option appears in a name only when it tells two cells of this run apart. What may change the output is called lossy
wherever it is named, as its claim says.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reports.text import DASH, visible
from sweeps.aggregate import CellResult
from sweeps.cell import VERIFICATION_IDENTITY, Cell
from sweeps.claims import Claim, claim_of

RULE = "commit rule "
OPTIONS = (*VERIFICATION_IDENTITY, "gamma", "hedge", "merge_states", "verify_margin", "cost_digest", "digest", "kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Names of the cells of one run, by cell id."""

    setting: dict[str, str]
    method: dict[str, str]
    task: dict[str, str]
    methods: tuple[str, ...]

    def budget(self, cell: Cell) -> str:
        """The budget of a cell; draft-free decoding has none."""
        return DASH if cell.is_baseline else str(cell.drafter.budget)

    def by_setting(self, results: Iterable[CellResult]) -> Iterator[tuple[str, list[CellResult]]]:
        """Results grouped by setting, in the order in which settings first appear."""
        groups = defaultdict(list)
        for result in results:
            groups[self.setting[result.cell_id]].append(result)
        yield from groups.items()


def labels_of(results: Iterable[CellResult]) -> Labels:
    """Names for `results`."""
    results = tuple(results)
    cells, ids = [result.cell for result in results], [result.cell_id for result in results]
    settings = apart(varying([setting_facts(cell) for cell in cells]), [cell.target.digest for cell in cells])
    tasks = apart([visible(cell.task.name, 80) for cell in cells], [cell.task.digest for cell in cells])
    methods = method_names(cells)
    drafting = [method for cell, method in zip(cells, methods, strict=True) if not cell.is_baseline]
    return Labels(
        setting=dict(zip(ids, settings, strict=True)),
        method=dict(zip(ids, methods, strict=True)),
        task=dict(zip(ids, tasks, strict=True)),
        methods=tuple(dict.fromkeys(drafting)),
    )


def setting_facts(cell: Cell) -> dict[str, str]:
    """What the cells of one table share. The first three always show, a commit rule where it is not everywhere the
    standard one, the others where they differ within the run.

    An approximate cache always shows: nothing that was decoded with it may look as if it were decoded without one.
    """
    decode, sampled = cell.decode, cell.decode.temperature > 0
    return {
        "": visible(cell.target.name, 80),
        "T = ": f"{decode.temperature:g}",
        "approximate cache ": "" if cell.target.exact_cache else cell.target.cache,
        RULE: decode.rule,
        "noise ": decode.noise if sampled else "",
        "confidence ": decode.confidence if sampled else "",
        "tokens ": str(decode.max_new_tokens),
        "block ": str(decode.block_length),
        "stop ": "ignored" if decode.ignore_eos else "honoured",
        "dtype ": cell.target.dtype,
        "cache ": cell.target.cache if cell.target.exact_cache else "",
        "revision ": cell.target.revision,
    }


def varying(rows: list[dict[str, str]], always: int = 3) -> list[str]:
    """One text a row: its first facts, which `always` show, any other that is not the same in all rows, and a rule
    worth a word.
    """
    values = {key: {row[key] for row in rows} - {""} for row in rows[:1] for key in row}
    shown = [
        key
        for place, key in enumerate(values)
        if place < always or len(values[key]) > 1 or (key == RULE and values[key] != {"standard"})
    ]
    return [", ".join(f"{key}{row[key]}" for key in shown if row[key]) for row in rows]


def apart(names: list[str], digests: list[str]) -> list[str]:
    """The names, with the start of the digest where one name stands for several digests."""
    known = defaultdict(set)
    for name, digest in zip(names, digests, strict=True):
        known[name].add(digest)
    pairs = zip(names, digests, strict=True)
    return [f"{name}, digest {digest[:8]}" if len(known[name]) > 1 else name for name, digest in pairs]


def method_names(cells: list[Cell]) -> list[str]:
    """The drafter's name with the options that tell drafters of that name apart; the budget is a column of its own.

    An oracle is marked as a bound and a lossy cell as lossy, so they are wherever a method is named.
    """
    used: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for cell in cells:
        for option in OPTIONS:
            used[cell.target.name, cell.drafter.name, key_of(option, cell)].add(str(getattr(cell.drafter, option)))
    names = []
    for cell in cells:
        told = [
            option for option in OPTIONS if len(used[cell.target.name, cell.drafter.name, key_of(option, cell)]) > 1
        ]
        extra = [option_text(option, getattr(cell.drafter, option)) for option in told]
        name = f"{visible(cell.drafter.name, 60)}{mark_of(cell)}"
        names.append("draft-free" if cell.is_baseline else ", ".join([name, *extra]))
    return names


def key_of(option: str, cell: Cell) -> str:
    """What an option is told apart within: max-commit goes with the rule of acceptance, which has a name already."""
    return f"{option} of {cell.drafter.acceptance}" if option == "max_commit" else option


def mark_of(cell: Cell) -> str:
    """What stands behind a drafter's name: an oracle is a bound, and a lossy cell is called so."""
    return cell.drafter.mark + (f" ({Claim.LOSSY})" if claim_of(cell) == Claim.LOSSY else "")


def option_text(option: str, value: object) -> str:
    """An option and its value in a method's name; a rule of acceptance by its name alone, what is on or off as
    `cross-block` or `no cross-block`.
    """
    if option == "acceptance":
        return str(value)
    if isinstance(value, bool) and option in VERIFICATION_IDENTITY:
        return f"{'' if value else 'no '}{option.replace('_', '-')}"
    return f"{option} {str(value)[:8]}"
