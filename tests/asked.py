"""What a toy target is asked to decode, for properties: settings of the decoder, and targets with prompts."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from sweeps.spec import DecodeSpec
from tests.toys import ToyTarget

seeds = st.integers(0, 2**63 - 1)


def specs(noise: str = "coupled", **more: st.SearchStrategy[Any]) -> st.SearchStrategy[DecodeSpec]:
    """Settings of short generations in small blocks; `more` draws the other fields."""
    return st.builds(
        DecodeSpec,
        max_new_tokens=st.integers(1, 14),
        block_length=st.integers(1, 6),
        temperature=st.sampled_from([0.0, 0.05, 0.7, 1.5, 4.0]),
        confidence=st.sampled_from(["top1", "sampled"]),
        ignore_eos=st.booleans(),
        noise=st.just(noise),
        **more,
    )


@st.composite
def prompted(
    draw: st.DrawFn,
    makes: tuple[Callable[..., ToyTarget], ...] = (ToyTarget,),
    **more: st.SearchStrategy[Any],
) -> tuple[ToyTarget, list[int]]:
    """A target of up to 38 real tokens, down to a single one, and a prompt of them; `more` draws its other fields."""
    vocab = draw(st.sampled_from([3, 4, 11, 40]))
    target = draw(st.sampled_from(makes))(
        seed=draw(st.integers(0, 10**6)),
        vocab_size=vocab,
        drift=draw(st.sampled_from([0.05, 0.3, 3.0])),
        stops=draw(st.sampled_from([(), (vocab - 3,), (0, vocab - 3)])),
        **{name: draw(strategy) for name, strategy in more.items()},
    )
    return target, draw(st.lists(st.integers(0, vocab - 3), max_size=13))
