"""Names of settings, tasks and methods: an option shows only where it tells two cells of the run apart."""

from dataclasses import replace

from reports.labels import labels_of
from sweeps.aggregate import aggregate_all
from sweeps.spec import DecodeSpec
from tests.set_rows import by_rule, set_cells, sets
from tests.synthetic import grid, sweep


def named(cells):
    made = sweep(tuple(cells), prompts=1, timed=0)
    return labels_of(aggregate_all(made.jobs, made.rows()))


def test_a_plain_grid_has_plain_names():
    labels = named(grid())
    assert set(labels.setting.values()) == {"tiny-sdar, T = 0", "tiny-sdar, T = 1"}
    assert set(labels.task.values()) == {"tiny-arith", "tiny-code"}
    assert labels.methods == ("ssd", "spot", "spot-gamma")
    assert set(labels.method.values()) == {"draft-free", *labels.methods}


def test_gammas_of_one_name_are_told_apart():
    assert named(grid(gammas=(0.1, 0.2))).methods == ("ssd", "spot", "spot-gamma, gamma 0.1", "spot-gamma, gamma 0.2")


def test_what_varies_in_the_decoding_shows():
    cells = grid(tasks=("tiny-arith",), budgets=(4,), temperatures=(0.0, 1.0))
    other = [
        replace(cell, decode=replace(cell.decode, noise="independent")) for cell in cells if cell.decode.temperature
    ]
    longer = [replace(cell, decode=DecodeSpec(max_new_tokens=256)) for cell in cells[:2]]
    settings = set(named([*cells, *other, *longer]).setting.values())
    assert settings == {
        "tiny-sdar, T = 0, tokens 128",
        "tiny-sdar, T = 0, tokens 256",
        "tiny-sdar, T = 1, noise coupled, tokens 128",
        "tiny-sdar, T = 1, noise independent, tokens 128",
    }


def test_a_commit_rule_shows_where_it_is_not_everywhere_the_standard_one():
    cells = grid(tasks=("tiny-arith",), budgets=(4,), temperatures=(0.0,))
    sets = [replace(cell, decode=replace(cell.decode, commit="threshold", tau=0.7)) for cell in cells]
    sure = [replace(cell, decode=replace(cell.decode, commit="threshold", tau=0.95)) for cell in cells]
    name = "tiny-sdar, T = 0, commit rule"
    assert set(named(sets).setting.values()) == {f"{name} threshold 0.7"}
    assert set(named([*sets, *sure]).setting.values()) == {f"{name} threshold 0.7", f"{name} threshold 0.95"}
    assert set(named([*cells, *sets]).setting.values()) == {f"{name} standard", f"{name} threshold 0.7"}


def test_one_name_with_two_digests_is_two_targets():
    cells = grid(tasks=("tiny-arith",), budgets=(4,), temperatures=(0.0,))
    again = [replace(cell, target=replace(cell.target, digest="f" * 64)) for cell in cells]
    assert set(named([*cells, *again]).setting.values()) == {
        "tiny-sdar, T = 0, digest 00000000",
        "tiny-sdar, T = 0, digest ffffffff",
    }


def test_an_order_model_for_each_target_is_still_one_method():
    cells = grid(targets=2, tasks=("tiny-arith",), budgets=(4,), temperatures=(0.0,))
    own = [
        replace(cell, drafter=replace(cell.drafter, digest=cell.target.digest[-1]))
        if cell.drafter.kind == "spot"
        else cell
        for cell in cells
    ]
    assert named(own).methods == ("ssd", "spot", "spot-gamma")


BASE = grid(tasks=("tiny-arith",), budgets=(8,), temperatures=(0.0,))[0]


def test_rules_of_acceptance_tell_methods_apart_and_lossy_ones_are_called_so():
    labels = named(set_cells(BASE))
    assert labels.methods == (
        "spot-sets, exact",
        "spot-sets (lossy), subset",
        "spot-sets (lossy), cut",
        "spot-sets (lossy), product",
    )


def test_one_lossy_rule_needs_no_option_to_be_called_so():
    (free,) = set_cells(BASE, drafters=by_rule()[3:])[1:2]
    product = replace(free, drafter=by_rule()[3])
    assert named((free, product)).methods == ("spot-sets (lossy)",)


def test_switches_of_one_name_are_told_apart():
    free, plain = set_cells(BASE, drafters=(sets("a"),))[1:]
    made = [
        replace(plain, drafter=sets("a", **options))
        for options in (
            {"cross_block": True},
            {"cross_block": True, "refresh": True},
            {"acceptance": "product"},
            {"acceptance": "product", "max_commit": True},
        )
    ]
    assert len(set(named((free, plain, *made)).methods)) == 5
    assert named((free, plain, made[0])).methods == ("a, no cross-block", "a, cross-block")
    assert named((free, *made[2:])).methods == ("a (lossy), no max-commit", "a (lossy), max-commit")
