"""On a device of its own a decode mixes no tensors of two places, and reads from there as often as it must, no more."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from sweeps.spec import DecodeSpec, DrafterSpec
from tests.elsewhere import DEVICE, elsewhere
from tests.gpu.random_target import random_target
from tests.gpu.setting import TINY, Setting
from workers.catalog import TARGETS
from workers.decoding import acceptance
from workers.decoding.expand import VirtualState
from workers.decoding.loop import decode
from workers.decoding.rule import judge
from workers.decoding.tally import Generation
from workers.decoding.verification import Verification
from workers.drafters.base import Drafter
from workers.drafters.none import NoDrafter
from workers.drafters.set_scorer import ModelSetScorer
from workers.drafters.spot import OrderScorer
from workers.drafters.spot import make as make_spot
from workers.drafters.spot_sets import SetDrafter
from workers.drafters.ssd import make as make_ssd
from workers.models.set_facts import SetConfig
from workers.models.set_model import SetModel, bind
from workers.targets.base import Target

SETTING = Setting(device=DEVICE, small=True, seed=0)
SPOT = TARGETS["tiny-sdar"].artifacts["order_model"]
RULES = {
    "T=0": DecodeSpec(max_new_tokens=30, temperature=0.0),
    "coupled": DecodeSpec(max_new_tokens=30, temperature=0.7),
    "independent": DecodeSpec(max_new_tokens=30, temperature=0.7, noise="independent"),
    "sampled": DecodeSpec(max_new_tokens=30, temperature=0.7, confidence="sampled"),
    "threshold": DecodeSpec(max_new_tokens=30, commit="threshold", tau=0.6),  # what is read lies above it everywhere
    "surer": DecodeSpec(max_new_tokens=30, commit="threshold", tau=0.9),  # and below this one
    "surer, coupled": DecodeSpec(max_new_tokens=30, commit="threshold", tau=0.9, temperature=0.7),
    "surer, sampled": DecodeSpec(max_new_tokens=30, commit="threshold", tau=0.9, temperature=0.7, confidence="sampled"),
    "surer, independent": DecodeSpec(
        max_new_tokens=30, commit="threshold", tau=0.9, temperature=0.7, noise="independent"
    ),
}


def drafter_of(kind: str, target: Target) -> Drafter:
    spec = DrafterSpec(name=kind, kind=kind, budget=4, checkpoint=SPOT)
    if kind == "spot-sets":
        config = SetConfig(block_length=32, hidden=TINY.hidden, layers=1, width=32, feedforward=64, candidate_width=24)
        return SetDrafter(spec, bind(SetModel(config).eval().to(DEVICE), target))
    if kind == "none":
        return NoDrafter()
    return (make_spot if kind == "spot" else make_ssd)(spec, block_length=32, device=DEVICE)


def decoded(kind: str, rule: DecodeSpec, **verified: Any) -> tuple[Generation, Counter[str]]:
    """A decode of 30 tokens behind 70: a prefilled prefix, a block begun by the prompt, and one that follows it."""
    target = random_target("elsewhere", TINY, SETTING)
    drafter = drafter_of(kind, target)
    ask = OrderScorer.__call__

    def of_open(self: OrderScorer, nodes: Sequence[VirtualState]) -> Tensor:
        """What the order model says, with nothing left of made-up values at positions that are filled."""
        open_BL = [[position in node.state.open for position in range(32)] for node in nodes]
        return ask(self, nodes) * torch.tensor(open_BL)

    with elsewhere() as reads, patch.object(OrderScorer, "__call__", of_open):
        made = decode(target, drafter, [7] * 70, spec=rule, seed=3, verification=Verification(**verified))
    return made, reads


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("none", "T=0"),
        ("ssd", "independent"),
        ("spot", "coupled"),
        ("spot", "sampled"),
        ("spot-sets", "surer, independent"),
        ("spot-sets", "surer, sampled"),
    ],
)
def test_no_operation_mixes_two_places(kind: str, rule: str) -> None:
    made, reads = decoded(kind, RULES[rule], margin=0.25)
    assert len(made.output_ids) == 30
    assert reads.total() > 0  # the device was used
    assert (max(made.counters.drafted) == 4) == (kind != "none")


@pytest.mark.parametrize(("module", "name"), [("block_causal", "arange"), ("block_causal", "tensor")])
def test_a_tensor_that_is_not_told_its_place_is_seen(monkeypatch: pytest.MonkeyPatch, module: str, name: str) -> None:
    real = getattr(torch, name)

    class Forgetful:
        """torch, but one maker of tensors forgets the device."""

        def __getattr__(self, asked: str) -> Any:
            return (
                partial(lambda *args, device=None, **options: real(*args, **options))
                if asked == name
                else getattr(torch, asked)
            )

    monkeypatch.setattr(f"workers.targets.{module}.torch", Forgetful())
    with pytest.raises(RuntimeError, match=r"device|meta"):
        decoded("none", RULES["T=0"])


def test_the_host_reads_the_device_no_more_than_it_must() -> None:
    """Twice a visited state; with a drafter also once a round for the stale distribution and at each model call."""
    made, reads = decoded("none", RULES["T=0"])
    assert reads == {"tolist": 2 * made.counters.nfe}
    made, reads = decoded("none", RULES["threshold"])
    assert (made.counters.nfe, reads) == (2, {"tolist": 2 * 2})  # both blocks are filled at once
    made, reads = decoded("spot", RULES["coupled"])
    visited = made.counters.rounds + sum(made.counters.accepted)
    assert reads["tolist"] == 2 * visited
    assert reads["cpu"] <= made.counters.rounds + made.counters.drafter_calls
    assert reads["nonzero"] <= made.counters.rounds
    assert reads.keys() <= {"tolist", "cpu", "nonzero"}


def test_a_set_model_is_read_once_a_call() -> None:
    made, reads = decoded("spot-sets", RULES["surer, coupled"])
    visited = made.counters.rounds + sum(made.counters.accepted)
    assert made.counters.drafter_calls > made.counters.rounds > 0  # several calls a round
    assert reads["tolist"] == 2 * visited
    assert reads["cpu"] <= made.counters.rounds + made.counters.drafter_calls  # the stale distribution, and each call
    assert reads["nonzero"] <= made.counters.rounds
    assert reads.keys() <= {"tolist", "cpu", "nonzero"}


@pytest.mark.parametrize("max_commit", [False, True])
def test_product_reads_once_for_all_children_of_a_judged_state(
    max_commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, judged = list[int](), list[tuple[int, ...]]()
    real, tokens = acceptance.log_confidences, ModelSetScorer.tokens

    def counted(drafted: Sequence[acceptance.Step], *rest: Any) -> list[float]:
        asked.append(len(drafted))
        return real(drafted, *rest)

    def others(self: ModelSetScorer, logp_BAC: Tensor) -> tuple[Tensor, Tensor]:
        """Not the target's own tokens, so that no step is."""
        token_BA, sure_BA = tokens(self, logp_BAC)
        return token_BA + 1, sure_BA

    monkeypatch.setattr(acceptance, "log_confidences", counted)
    monkeypatch.setattr(ModelSetScorer, "tokens", others)
    monkeypatch.setattr("workers.decoding.active.judge", lambda *given: judged.append(given[2]) or judge(*given))
    made, reads = decoded("spot-sets", RULES["surer"], acceptance="product", max_commit=max_commit)
    assert sum(made.counters.accepted) > 0
    assert max(asked) > 1  # several children, one read
    assert reads["tolist"] == 2 * len(judged) + sum(count > 0 for count in asked)
    assert len(asked) <= len(judged)
    assert reads.keys() <= {"tolist", "cpu", "nonzero"}
