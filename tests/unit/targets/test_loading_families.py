"""Checkpoints of every family in their published layouts: what loads, and what is refused in one clear line."""

import shutil
from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.utils._python_dispatch import TorchDispatchMode

from sweeps.spec import DecodeSpec, TargetSpec
from tests.tiny_checkpoints import LAYOUTS, cut_in_shards, edit_json, write_checkpoint
from workers.catalog import FAMILIES
from workers.decoding.loop import decode
from workers.drafters.ssd import SsdDrafter
from workers.targets.inspect import facts_of, inspect_checkpoint
from workers.targets.load import load, load_target
from workers.targets.shape import Weight

FIRST = {
    "sdar": "model.layers.1.self_attn.q_proj.weight",
    "llada2": "model.layers.1.mlp.experts.5.down_proj.weight",
    "llada": "model.transformer.blocks.1.ff_proj.weight",
    "dream": "model.layers.1.self_attn.v_proj.bias",
}
EXTRA = {
    "sdar": "model.layers.0.self_attn.q_proj.bias",
    "llada2": "model.layers.0.mlp.gate.weight",
    "llada": "model.transformer.blocks.0.q_norm.weight",
    "dream": "model.layers.0.self_attn.o_proj.bias",
}
NEEDED = {
    "sdar": ("vocab_size", "head_dim", "rope_theta", "tie_word_embeddings"),
    "llada2": (
        "n_group",
        "topk_group",
        "routed_scaling_factor",
        "partial_rotary_factor",
        "first_k_dense_replace",
        "num_shared_experts",
        "use_qk_norm",
        "moe_intermediate_size",
    ),
    "llada": ("d_model", "mlp_hidden_size", "rope_theta", "rope_full_precision", "block_type", "weight_tying"),
    "dream": ("hidden_size", "num_key_value_heads", "rms_norm_eps", "max_position_embeddings"),
}
UNSUPPORTED: list[tuple[str, str, Any]] = [
    ("llada2", "score_function", "softmax"),
    ("llada2", "use_qk_norm", False),
    ("llada2", "use_qkv_bias", True),
    ("llada2", "norm_head", True),
    ("llada2", "norm_topk_prob", False),
    ("llada2", "num_experts", 7),
    ("llada2", "topk_group", 5),
    ("llada2", "num_experts_per_tok", 9),
    ("llada2", "partial_rotary_factor", 1.5),
    ("llada", "block_type", "sequential"),
    ("llada", "activation_type", "swiglu"),
    ("llada", "layer_norm_type", "default"),
    ("llada", "rope", False),
    ("llada", "alibi", True),
    ("llada", "attention_layer_norm", True),
    ("llada", "include_bias", True),
    ("llada", "include_qkv_bias", True),
    ("llada", "scale_logits", True),
    ("llada", "n_heads", 3),
    ("llada", "n_kv_heads", 3),
    ("dream", "use_mrope", True),
    ("dream", "use_sliding_window", True),
    ("dream", "hidden_act", "gelu"),
    ("dream", "num_attention_heads", 5),
]
LLADA2_NAMES = ("n_group", "num_experts", "topk_group", "num_experts_per_tok")


@pytest.fixture(params=LAYOUTS)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _refused(folder: Path, *words: str) -> None:
    """Inspecting and loading refuse with one line that has all the words, before memory for any weight is taken."""
    for attempt in (inspect_checkpoint, load_target):
        with _Held() as held, pytest.raises(ValueError) as error:  # noqa: PT011  (the words are checked below)
            attempt(folder)
        assert held.made == []
        assert "\n" not in str(error.value)
        for word in words:
            assert word in str(error.value)


def test_a_published_layout_loads_and_decodes(tmp_path: Path, family: str) -> None:
    folder = write_checkpoint(tmp_path / "tiny", family=family, tied=False)
    for kind in FAMILIES[inspect_checkpoint(folder).architecture].caches:
        target = load(TargetSpec(name="tiny", path=str(folder), cache=kind), device="cpu")
        assert (target.traits.family, target.traits.cache) == (family, kind)
        assert target.traits.parameters == sum(t.numel() for t in load_file(folder / "model.safetensors").values())
        spec = DecodeSpec(max_new_tokens=9, block_length=4, ignore_eos=True)
        made = decode(target, SsdDrafter(3), target.encode("the word"), spec=spec, seed=0)
        assert len(made.output_ids) == 9
        assert target.traits.mask_id not in made.output_ids


def test_every_key_is_consumed_once_and_every_weight_filled_once(tmp_path: Path, family: str) -> None:
    """The published tensors tile the body's weights: counted cell by cell."""
    _, config = facts_of(write_checkpoint(tmp_path, family=family, tied=False))
    sizes = dict(config.shape.weights())
    filled = {name: torch.zeros(size, dtype=torch.int32) for name, size in sizes.items()}
    assert len({weight.name for weight in config.weights}) == len(config.weights)
    for weight in config.weights:
        taken = torch.zeros(weight.shape, dtype=torch.int32)
        for into, start, begin, length in weight.pieces(sizes):
            part, source = filled[into].narrow(weight.axis, start, length), taken.narrow(weight.axis, begin, length)
            assert part.shape == source.shape
            part += 1
            source += 1
        assert taken.eq(1).all()
    assert all(count.eq(1).all() for count in filled.values())


def test_a_tensor_of_several_weights_fills_one_after_the_other() -> None:
    sizes = {"q": (6, 4), "k": (2, 4), "v": (2, 4)}
    fused = Weight(name="qkv", shape=(10, 4), into="q", more=("k", "v"))
    assert list(fused.pieces(sizes)) == [("q", 0, 0, 6), ("k", 0, 6, 2), ("v", 0, 8, 2)]
    part = Weight(name="expert", shape=(2, 4), into="q", start=4)
    assert list(part.pieces(sizes)) == [("q", 4, 0, 2)]
    with pytest.raises(AssertionError, match="qkv holds 11, its weights 10"):
        list(Weight(name="qkv", shape=(11, 4), into="q", more=("k", "v")).pieces(sizes))


def test_the_shape_names_the_weights_of_the_body(tmp_path: Path, family: str) -> None:
    target = load_target(write_checkpoint(tmp_path, family=family, tied=False))
    named = {f"model.{name}": tuple(weight.shape) for name, weight in target.body.state_dict().items()}
    assert named == {name: size for name, size in target.body.shape.weights() if name != "lm_head.weight"}


def test_shards_equal_the_single_file(tmp_path: Path, family: str) -> None:
    whole = write_checkpoint(tmp_path / "whole", family=family)
    cut = shutil.copytree(whole, tmp_path / "cut")
    cut_in_shards(cut)
    first, second = (load_target(folder).body.state_dict() for folder in (whole, cut))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_broken_shards(tmp_path: Path, family: str) -> None:
    folder = write_checkpoint(tmp_path, family=family)
    first, second = cut_in_shards(folder)
    content = second.read_bytes()
    second.write_bytes(content[:-100])
    _refused(folder, second.name, "truncated")
    second.unlink()
    _refused(folder, second.name, "missing")
    second.write_bytes(content)
    load_target(folder)
    key = sorted(load_file(first))[0]
    save_file(load_file(second) | {key: load_file(first)[key]}, str(second))
    _refused(folder, key, first.name, second.name)


def test_missing_and_unexpected_tensors_are_all_named(tmp_path: Path, family: str) -> None:
    lost, extra = FIRST.get(family, LAYOUTS[family].norm), EXTRA.get(family, "model.ghost.weight")

    def change(tensors: dict[str, torch.Tensor]) -> None:
        del tensors[lost]
        tensors[extra] = torch.zeros(3)

    _refused(write_checkpoint(tmp_path, family=family, weights=change), lost, "missing", extra)


def test_a_wrong_shape_is_named_with_both_sizes(tmp_path: Path, family: str) -> None:
    norm = LAYOUTS[family].norm
    wide = {norm: torch.ones(33)}
    _refused(write_checkpoint(tmp_path, family=family, weights=lambda w: w.update(wide)), norm, "[33]", "[32]")


def test_pickled_weights_are_never_read(tmp_path: Path, family: str) -> None:
    folder = write_checkpoint(tmp_path, family=family)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model-00001-of-00002.bin").write_bytes(b"never read")
    _refused(folder, "model.safetensors", "missing", "pytorch_model-00001-of-00002.bin", "never read")


def test_an_untied_checkpoint_without_a_head(tmp_path: Path, family: str) -> None:
    _, config = facts_of(write_checkpoint(tmp_path / "whole", family=family, tied=False))
    lost = shutil.copytree(tmp_path / "whole", tmp_path / "lost")
    tensors = load_file(lost / "model.safetensors")
    del tensors[config.head]
    save_file(tensors, str(lost / "model.safetensors"))
    _refused(lost, config.head, "missing")


def test_a_tied_checkpoint_may_store_its_head(tmp_path: Path, family: str) -> None:
    _, config = facts_of(write_checkpoint(tmp_path / "plain", family=family))
    embedding = next(weight.name for weight in config.weights if weight.into == "model.embed_tokens.weight")
    same = write_checkpoint(
        tmp_path / "same", family=family, weights=lambda w: w.update({config.head: w[embedding].clone()})
    )
    hidden = torch.randn(32)
    assert torch.equal(load_target(same).logits(hidden), load_target(tmp_path / "plain").logits(hidden))
    other = write_checkpoint(
        tmp_path / "other", family=family, weights=lambda w: w.update({config.head: w[embedding] + 1})
    )
    with pytest.warns(UserWarning, match="differs; the embedding is used"):
        load_target(other)


def test_needed_fields_are_named_when_missing(tmp_path: Path, family: str) -> None:
    for field in NEEDED.get(family, (LAYOUTS[family].size_field,)):
        _refused(write_checkpoint(tmp_path, family=family, config={field: ...}), "config.json", f"{field} is missing")


def test_block_size_may_be_absent(tmp_path: Path) -> None:
    load_target(write_checkpoint(tmp_path, config={"block_size": ...}))


@pytest.mark.parametrize(("family", "field", "value"), UNSUPPORTED)
def test_what_is_not_supported_is_named(tmp_path: Path, family: str, field: str, value: Any) -> None:
    words = (repr(value), "allowed") if field not in LLADA2_NAMES else ("config.json",)
    name = field if field not in LLADA2_NAMES else ""
    _refused(write_checkpoint(tmp_path, family=family, config={field: value}), name, *words)


def test_a_wrong_architecture_is_named_with_the_ones_there_are(tmp_path: Path) -> None:
    for names in (["Qwen3ForCausalLM"], ["SDARForCausalLM", "DreamModel"], [], None, "DreamModel", [5], [["x"]]):
        _refused(write_checkpoint(tmp_path, config={"architectures": names}), "architectures", repr(names), *FAMILIES)


def test_weights_of_one_family_under_the_name_of_another(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, family="dream")
    edit_json(folder / "config.json", architectures=["SDARForCausalLM"], head_dim=8)
    _refused(folder, "q_norm", "missing", "q_proj.bias", "unexpected")


def test_a_cache_that_the_family_cannot_keep(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cache is 'dual': allowed for this architecture is exact$"):
        load_target(write_checkpoint(tmp_path / "a"), cache="dual")
    with pytest.raises(ValueError, match=r"cache is 'exact': allowed for this architecture is dual \| prefix \| none"):
        load_target(write_checkpoint(tmp_path / "b", family="llada"), cache="exact")


def test_ends_of_turn_and_published_mask_ids(tmp_path: Path) -> None:
    """A chat end in the vocabulary is a stop id; LLaDA2's config names no mask, its tokenizer does."""
    for family, end in (("llada", "<|eot_id|>"), ("dream", "<|im_end|>")):
        folder = write_checkpoint(tmp_path / family, family=family)
        stops = inspect_checkpoint(folder).stop_ids
        edit_json(folder / "added_tokens.json", **{end: 7})
        (folder / "tokenizer.json").rename(folder / "kept.json")
        edit_json(folder / "vocab.json", **{f"w{i}": i for i in range(8, 200)})
        edit_json(folder / "tokenizer_config.json", eos_token="w20", mask_token="w21")
        assert set(inspect_checkpoint(folder).stop_ids) == {*stops, 7, 20}
    folder = write_checkpoint(tmp_path / "llada2", family="llada2", config={"mask_token_id": ...})
    assert inspect_checkpoint(folder).mask_id == 2
    edit_json(folder / "tokenizer_config.json", mask_token=...)
    _refused(folder, "published mask id is 156895", "allowed is an id in 0..")


class _Held(TorchDispatchMode):
    """The largest number of values that one operation made while it was active."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[int] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = func(*args, **(kwargs or {}))
        if (
            isinstance(out, torch.Tensor)
            and out.device.type != "meta"
            and func._schema.name
            in (
                "aten::empty",
                "aten::clone",
                "aten::_to_copy",
                "aten::cat",
                "aten::stack",
            )
        ):
            self.made.append(out.numel())
        return out


def test_loading_allocates_every_weight_once(tmp_path: Path, family: str) -> None:
    folder = write_checkpoint(tmp_path, family=family, tied=False)
    with _Held() as held:
        target = load_target(folder, dtype="float64")
    wanted = sum(prod(size) for _, size in target.body.shape.weights())
    assert sum(held.made) <= 1.01 * wanted
    assert {weight.dtype for weight in target.body.state_dict().values()} == {torch.float64}
