"""One function labels: over all valid cells no lenient rule is anything but lossy, and nobody else spells a label."""

import ast
from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.claims import Claim, claim_of
from sweeps.spec import DTYPES, Acceptance, DecodeSpec, DrafterSpec, Noise, TargetSpec, TaskSpec
from workers.catalog import DRAFTERS, FAMILIES

ROOT = Path(__file__).parents[3]
RULES = get_args(Acceptance)
LABELS = {str(claim) for claim in Claim}
CACHES = sorted({(kept, entry.exact(kept)) for entry in FAMILIES.values() for kept in (*entry.caches, "none")})


def test_there_are_four_labels_and_four_rules() -> None:
    assert {"lossless", "distribution-exact", "exact given the cache", "lossy"} == LABELS
    assert RULES == ("exact", "subset", "cut", "product")
    assert [claim for claim in Claim if claim.promises_identity] == [Claim.LOSSLESS, Claim.EXACT_GIVEN_CACHE]
    assert CACHES == [("dual", False), ("exact", True), ("none", True), ("prefix", False)]


def cell_of(decode: DecodeSpec, drafter: DrafterSpec, kept: str, exact: bool) -> Cell:
    target = TargetSpec(name="t", cache=kept, exact_cache=exact)
    return Cell(target=target, task=TaskSpec(name="k", kind="k"), decode=decode, drafter=drafter)


def expected(cell: Cell) -> str:
    """The label by the words of decoding.md section 7, row by row."""
    if cell.drafter.acceptance in ("subset", "cut", "product"):
        return "lossy"
    free = cell.drafter.kind == "none"
    if cell.decode.temperature and cell.decode.noise == "independent" and not free:
        return "distribution-exact"
    return {"exact": "lossless", "none": "lossless"}.get(cell.target.cache, "exact given the cache")


def test_every_cell_of_a_grid_of_everything_has_the_label_of_its_row() -> None:
    """Commit rules x acceptance x max-commit x noise x T x caches x every drafter of the table that can use them."""
    seen = Counter[tuple[str, str]]()
    axes = product(("standard", "threshold"), RULES, (False, True), ("coupled", "independent"), (0.0, 0.5, 1.0), CACHES)
    for (commit, rule, most, noise, temperature, (kept, exact)), (kind, entry) in product(axes, DRAFTERS.items()):
        lenient = rule != "exact" or most
        if commit not in entry.commits or (lenient and (commit == "standard" or "acceptance" not in entry.uses)):
            continue
        decode = DecodeSpec(commit=commit, tau=0.9, temperature=temperature, noise=noise)
        drafter = NO_DRAFTER
        if kind != "none":
            drafter = DrafterSpec(name=kind, kind=kind, acceptance=rule, max_commit=most, oracle=entry.oracle)
        cell = cell_of(decode, drafter, kept, exact)
        assert claim_of(cell) == expected(cell)
        seen[rule, claim_of(cell)] += 1
    assert {label for _, label in seen} == LABELS
    assert {rule: {label for other, label in seen if other == rule} for rule in RULES if rule != "exact"} == {
        "subset": {"lossy"},
        "cut": {"lossy"},
        "product": {"lossy"},
    }
    assert min(seen.values()) > 10


numbers = st.floats(0.0, 0.999)


@st.composite
def drafters(draw: st.DrawFn) -> DrafterSpec:
    """Any drafter that its spec lets be, whatever its name."""
    rule = draw(st.sampled_from(RULES))
    crossing = draw(st.booleans())
    return DrafterSpec(
        name=draw(st.sampled_from(["spot-sets", "lossless", "none", "exact"])),
        kind=draw(st.sampled_from([kind for kind in DRAFTERS if kind != "none"])),
        budget=draw(st.integers(1, 64)),
        gamma=draw(numbers),
        hedge=draw(numbers),
        merge_states=draw(st.booleans()),
        verify_margin=draw(numbers) if rule == "exact" and not crossing else 0.0,
        acceptance=rule,
        max_commit=draw(st.booleans()),
        cross_block=crossing,
        refresh=crossing and draw(st.booleans()),
        oracle=draw(st.booleans()),
    )


decodes = st.builds(
    DecodeSpec,
    max_new_tokens=st.integers(1, 256),
    block_length=st.integers(1, 64),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    noise=st.sampled_from(get_args(Noise)),
    confidence=st.sampled_from(["top1", "sampled"]),
    ignore_eos=st.booleans(),
    commit=st.just("threshold"),
    tau=st.floats(0.01, 0.99),
)


@given(decodes, drafters(), st.sampled_from(CACHES), st.sampled_from(DTYPES), st.integers(0, 9))
def test_no_option_makes_a_lenient_rule_anything_but_lossy_nor_an_exact_one_lossy(
    decode: DecodeSpec, drafter: DrafterSpec, kept: tuple[str, bool], dtype: str, seed: int
) -> None:
    cell = Cell(
        target=TargetSpec(name="lossless", cache=kept[0], exact_cache=kept[1], dtype=dtype),
        task=TaskSpec(name="k", kind="k"),
        decode=decode,
        drafter=drafter,
        seed=seed,
    )
    assert (claim_of(cell) is Claim.LOSSY) == (drafter.acceptance != "exact")
    assert claim_of(cell) == expected(cell)
    assert not (claim_of(cell) is Claim.LOSSY and claim_of(cell).promises_identity)
    assert claim_of(cell.baseline()) in (Claim.LOSSLESS, Claim.EXACT_GIVEN_CACHE)


@cache
def modules() -> dict[Path, ast.Module]:
    """Every module of the four packages but the one that has the labels."""
    packages = ("sweeps", "workers", "orchestrator", "reports")
    paths = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    paths.remove(ROOT / "sweeps" / "claims.py")
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def strings(tree: ast.Module) -> set[str]:
    """Every string of a module that is not documentation."""
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in told)
    return {node.value for node in constants if isinstance(node.value, str)}


def test_no_other_module_and_no_template_spells_a_label() -> None:
    """A label that stands alone in code or a template could be given to any cell; sentences may say the words."""
    assert len(modules()) > 100
    for path, tree in modules().items():
        assert not LABELS & {text.strip(" ()").lower() for text in strings(tree)}, path
    templates = list((ROOT / "reports").rglob("*.j2"))
    assert templates
    for path in templates:
        assert not any(label in path.read_text(encoding="utf-8").lower() for label in LABELS), path


def test_no_other_function_gives_a_claim() -> None:
    """Elsewhere members of the enumeration are compared with or shown, never returned, assigned or passed on."""
    for path, tree in modules().items():
        for node in ast.walk(tree):
            value = node.value if isinstance(node, ast.Return | ast.keyword | ast.Assign) else None
            owner = value.value if isinstance(value, ast.Attribute) else None
            assert not (isinstance(owner, ast.Name) and owner.id == "Claim"), path
