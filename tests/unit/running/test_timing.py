import pytest

from sweeps.spec import DecodeSpec
from tests.toys import ToyTarget
from workers import timing
from workers.decoding.loop import decode
from workers.drafters.ssd import SsdDrafter
from workers.tasks.base import Prompt
from workers.timing import time_prompt

SPEC = DecodeSpec(max_new_tokens=16, block_length=8)
PROMPT = Prompt(id="p", text="", gold="")


def test_sides_alternate_abba_after_one_untimed_run_each(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def watched(target, drafter, ids, **options):  # type: ignore[no-untyped-def]
        asked.append(type(drafter).__name__)
        return decode(target, drafter, ids, **options)

    monkeypatch.setattr(timing, "decode", watched)
    target = ToyTarget(drift=0.1)
    row = time_prompt(target, SsdDrafter(4), PROMPT, 7, [1], spec=SPEC, seed=0, repeats=4)
    a, b = "SsdDrafter", "NoDrafter"
    assert asked == [a, b, a, b, b, a, a, b, b, a]
    assert (row.prompt_id, row.prompt_index) == ("p", 7)
    assert len(row.variant_seconds) == len(row.baseline_seconds) == 4
    assert 0 < row.baseline_forward_seconds < sum(row.baseline_seconds)


def test_the_untimed_run_meets_every_batch_shape_of_the_timed_ones() -> None:
    target = ToyTarget(drift=0.1)
    time_prompt(target, SsdDrafter(4), PROMPT, 0, [1], spec=SPEC, seed=0, repeats=2)
    batches = target.batches
    warm_up = decode(target, SsdDrafter(4), [1], spec=SPEC, seed=0).counters.nfe + 16
    assert set(batches[warm_up:]) <= set(batches[:warm_up])


def test_independent_noise_is_reported_as_not_identical() -> None:
    spec = DecodeSpec(max_new_tokens=16, block_length=8, temperature=1.0, noise="independent")
    row = time_prompt(ToyTarget(drift=0.1), SsdDrafter(4), PROMPT, 0, [1], spec=spec, seed=0, repeats=1)
    assert not row.identical
    assert row.baseline_nfe == 16


def test_a_repeat_that_decodes_something_else_is_an_error() -> None:
    class Drifting(ToyTarget):
        def start(self, *prompt, **options):  # type: ignore[no-untyped-def]
            self.seed += 1
            return super().start(*prompt, **options)

    with pytest.raises(RuntimeError, match=r"repeat 0 of the variant is another generation .*: not reproducible"):
        time_prompt(Drifting(), SsdDrafter(4), PROMPT, 0, [1], spec=SPEC, seed=0, repeats=1)
