"""The commit rule as an axis: what it multiplies, what it drops, and that it leaves identities of before alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.tables import built_in_tables
from sweeps.cell import NO_DRAFTER, Cell, decode_identity
from sweeps.expand import expand
from sweeps.facts import Artifact, Facts
from sweeps.load import load_sweep
from sweeps.source import SweepError
from sweeps.spec import DecodeSpec, GridSpec, SweepSpec, TargetSpec, TaskSpec
from tests import sweep_files
from tests.sweep_files import BASE

TABLES = replace(sweep_files.TABLES, drafters=built_in_tables().drafters)

SETS = Artifact(path="/graphs/sets", digest="a" * 64, block_length=32, commit="threshold", tau=0.9)
ONES = Artifact(path="/graphs/ones", digest="b" * 64, block_length=32, commit="standard")


def load(folder: Path, text: str) -> SweepSpec:
    (folder / "s.yaml").write_text(text)
    return load_sweep(folder / "s.yaml", (), TABLES)


def facts(**artifacts: Artifact) -> Facts:
    return Facts(
        kinds=TABLES.drafters,
        max_positions={"small": 512},
        artifacts={("small", name): artifact for name, artifact in artifacts.items()},
    )


def cell(**decode: object) -> Cell:
    return Cell(
        target=TargetSpec(name="t"),
        task=TaskSpec(name="k", kind="k"),
        decode=DecodeSpec(**decode),  # type: ignore[arg-type]
        drafter=NO_DRAFTER,
    )


def test_the_standard_rule_has_no_tau_and_the_identity_it_always_had() -> None:
    """The id was written down before there was another rule."""
    assert cell().cell_id == cell(tau=0.3).cell_id == "e5ea6c720dcf5c975b14"
    assert set(decode_identity(DecodeSpec())) == {
        "max_new_tokens",
        "block_length",
        "temperature",
        "noise",
        "confidence",
        "ignore_eos",
    }
    assert (DecodeSpec(tau=0.3), DecodeSpec().tau, DecodeSpec().threshold) == (DecodeSpec(), 1.0, None)
    ids = {cell().cell_id, *(cell(commit="threshold", tau=tau).cell_id for tau in (0.5, 0.7, 0.9))}
    assert len(ids) == 4


def test_rules_and_limits_as_people_and_the_decoder_read_them() -> None:
    sets = DecodeSpec(commit="threshold")
    assert (sets.tau, sets.threshold, sets.rule) == (0.9, 0.9, "threshold 0.9")
    assert sets.limit == pytest.approx(2.1972245773362196)
    assert (DecodeSpec().rule, DecodeSpec().limit) == ("standard", float("inf"))
    assert DecodeSpec(commit="threshold", tau=0.5).limit == 0.0


@pytest.mark.parametrize("tau", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_a_tau_that_is_no_threshold_is_refused(tau: float) -> None:
    with pytest.raises(ValueError, match=r"decode\.tau is .*: allowed is a number above 0 and below 1"):
        DecodeSpec(commit="threshold", tau=tau)
    with pytest.raises(ValueError, match=r"grid\.tau is"):
        GridSpec(target=("t",), task=("k",), tau=(0.5, tau))


def test_tau_multiplies_only_the_threshold_rule_and_a_baseline_has_its_variants_rule(tmp_path: Path) -> None:
    text = BASE + "  drafter: [ssd, freedave]\n  commit: [standard, threshold]\n  tau: [0.7, 0.9]\n"
    expansion = expand(load(tmp_path, text), facts())
    assert [(c.labels[0], c.cell.decode.rule) for c in expansion.cells] == [
        *((name, "standard") for name in ("none", "ssd", "freedave")),
        *((name, f"threshold {tau}") for tau in (0.7, 0.9) for name in ("none", "freedave")),
    ]
    assert [(d.axes, d.reason, d.count) for d in expansion.dropped] == [
        ({"drafter": "ssd", "commit": "threshold"}, "ssd drafts for the commit rule standard only", 2)
    ]


def test_only_drafters_that_draft_for_the_rule_are_left(tmp_path: Path) -> None:
    drafters = [name for name in TABLES.drafters if name != "spiffy"]
    text = BASE + f"  drafter: [{', '.join(drafters)}]\n  commit: threshold\n"
    expansion = expand(load(tmp_path, text), facts())
    assert [c.labels[0] for c in expansion.cells] == ["none", "freedave"]
    assert {d.axes["drafter"] for d in expansion.dropped} == {*drafters} - {"none", "freedave"}


def test_a_graph_of_another_rule_is_dropped_with_what_to_do(tmp_path: Path) -> None:
    text = (
        BASE
        + "  drafter: [ones, sets]\n  commit: [standard, threshold]\ndrafters:\n"
        + "  ones: {kind: spiffy, checkpoint: /graphs/ones}\n  sets: {kind: spiffy, checkpoint: /graphs/sets}\n"
    )
    spec = load(tmp_path, text)
    (target,) = spec.targets
    remakes = {(target.name, "ones", 0.9): "make it with --tau 0.9", (target.name, "sets", None): "make it without"}
    expansion = expand(spec, replace(facts(ones=ONES, sets=SETS), remakes=remakes))
    assert [(c.labels[0], c.cell.decode.rule) for c in expansion.cells if not c.cell.is_baseline] == [
        ("ones", "standard"),
        ("sets", "threshold 0.9"),
    ]
    reasons = {d.axes["drafter"]: d.reason for d in expansion.dropped}
    assert reasons["sets"] == "its draft graph is for the commit rule threshold: make it without"
    assert reasons["ones"] == "its draft graph is for the commit rule standard: make it with --tau 0.9"


def test_rules_and_taus_can_be_excluded(tmp_path: Path) -> None:
    text = (
        BASE
        + "  drafter: [none, freedave]\n  commit: [standard, threshold]\n  tau: [0.7, 0.9]\n"
        + "exclude:\n  - {drafter: freedave, tau: 0.7}\n  - {drafter: freedave, commit: standard}\n"
    )
    expansion = expand(load(tmp_path, text), facts())
    assert [c.cell.decode.rule for c in expansion.cells if not c.cell.is_baseline] == ["threshold 0.9"]


def test_an_unknown_rule_is_named_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"grid\.commit is 'treshold': allowed is standard \| threshold"):
        load(tmp_path, BASE + "  commit: treshold\n")


def test_spec_of_another_rule_is_another_spec() -> None:
    with pytest.raises(ValueError, match="tau"):
        replace(DecodeSpec(), commit="threshold")  # the standard rule's tau is no threshold: it has to be said
