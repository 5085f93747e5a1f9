"""What the loader accepts and refuses: each problem is one ValueError that names the field or file."""

import hashlib
import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.tiny_checkpoints import END, MASK, PADDED, cut_in_shards, edit_json, write_checkpoint
from workers.targets.inspect import inspect_checkpoint
from workers.targets.load import load_target


def _refused(folder: Path, *words: str) -> None:
    """Inspecting and loading refuse with a ValueError that has all the words."""
    for attempt in (inspect_checkpoint, load_target):
        with pytest.raises(ValueError) as error:  # noqa: PT011  (the words are checked below)
            attempt(folder)
        for word in words:
            assert word in str(error.value)


def test_inspection_and_loading_agree(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "tiny-rand")
    facts, traits = inspect_checkpoint(folder), load_target(folder).traits
    for field in ("weight_digest", "vocab_size", "mask_id", "stop_ids", "max_positions", "parameters"):
        assert getattr(facts, field) == getattr(traits, field)
    assert traits.name == "tiny-rand"
    assert traits.mask_id == MASK
    assert traits.stop_ids == (END,)
    assert traits.exact_cache
    assert facts.parameters == sum(t.numel() for t in load_file(folder / "model.safetensors").values())


def test_digest_is_over_the_content_of_the_weight_files(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    content = (folder / "model.safetensors").read_bytes()
    assert inspect_checkpoint(folder).weight_digest == hashlib.sha256(hashlib.sha256(content).digest()).hexdigest()
    files = cut_in_shards(folder)
    parts = b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)
    assert inspect_checkpoint(folder).weight_digest == hashlib.sha256(parts).hexdigest()


def test_inspection_imports_no_torch(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    code = (
        "import sys; from workers.targets.inspect import inspect_checkpoint\n"
        f"inspect_checkpoint({str(folder)!r})\n"
        "assert not {'torch', 'transformers', 'safetensors'} & sys.modules.keys()"
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, timeout=60)


def test_shards_equal_the_single_file(tmp_path: Path) -> None:
    whole = write_checkpoint(tmp_path / "whole")
    cut = shutil.copytree(whole, tmp_path / "cut")
    cut_in_shards(cut)
    ids, seen = torch.tensor([[5, 6, 7]]), torch.ones(1, 1, 3, 3, dtype=torch.bool)
    first, second = (load_target(folder).dense(ids, seen) for folder in (whole, cut))
    assert torch.equal(first, second)


def test_block_size_of_the_config_is_ignored(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, config={"block_size": 4})
    session = load_target(folder).start([5] * 9, block_length=3, max_new_tokens=6)
    assert session.prefix_length == 9


@pytest.mark.parametrize("field", ["vocab_size", "head_dim", "num_key_value_heads", "rms_norm_eps", "rope_theta"])
def test_a_missing_config_field_is_named(tmp_path: Path, field: str) -> None:
    _refused(write_checkpoint(tmp_path, config={field: ...}), field, "missing", "config.json")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_size", "32"),
        ("num_hidden_layers", 0),
        ("num_key_value_heads", 3),
        ("head_dim", 7),
        ("rms_norm_eps", -1e-6),
        ("tie_word_embeddings", "yes"),
        ("hidden_act", "gelu"),
        ("attention_bias", True),
        ("use_sliding_window", True),
        ("architectures", ["Qwen3ForCausalLM"]),
        ("architectures", ["SDARMoeForCausalLM"]),
    ],
)
def test_a_wrong_config_value_is_named_with_what_is_allowed(tmp_path: Path, field: str, value: object) -> None:
    _refused(write_checkpoint(tmp_path, config={field: value}), field, repr(value), "allowed")


def test_scaled_rotary_embeddings_are_refused(tmp_path: Path) -> None:
    _refused(write_checkpoint(tmp_path, config={"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}), "yarn")


def test_theta_in_the_newer_spelling(tmp_path: Path) -> None:
    newer = {"rope_theta": ..., "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}
    ids, seen = torch.tensor([[5, 6, 7]]), torch.ones(1, 1, 3, 3, dtype=torch.bool)
    old = load_target(write_checkpoint(tmp_path / "old")).dense(ids, seen)
    new = load_target(write_checkpoint(tmp_path / "new", config=newer)).dense(ids, seen)
    assert torch.equal(old, new)


def test_missing_unexpected_and_misshapen_tensors(tmp_path: Path) -> None:
    key = "model.layers.1.self_attn.k_norm.weight"
    _refused(write_checkpoint(tmp_path / "a", weights=lambda w: w.pop(key)), key, "missing")  # type: ignore[arg-type,return-value]
    extra = {"model.layers.0.self_attn.q_proj.bias": torch.zeros(32)}
    _refused(write_checkpoint(tmp_path / "b", weights=lambda w: w.update(extra)), "q_proj.bias", "unexpected")
    wide = {"model.norm.weight": torch.ones(33)}
    _refused(write_checkpoint(tmp_path / "c", weights=lambda w: w.update(wide)), "model.norm.weight", "[33]", "[32]")


def test_broken_weight_files(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "cut")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    _refused(folder, "model.safetensors", "truncated")
    file.write_bytes(b"\x10")
    _refused(folder, "model.safetensors", "truncated")
    file.unlink()
    (folder / "pytorch_model.bin").write_bytes(b"never read")
    _refused(folder, "model.safetensors", "missing")


def test_brokencut_in_shards(tmp_path: Path) -> None:
    whole = write_checkpoint(tmp_path / "whole")
    lost = shutil.copytree(whole, tmp_path / "lost")
    cut_in_shards(lost)[1].unlink()
    _refused(lost, "model-00002-of-00002.safetensors", "missing")
    twice = shutil.copytree(whole, tmp_path / "twice")
    first, second = cut_in_shards(twice)
    key = sorted(load_file(first))[0]
    save_file(load_file(second) | {key: load_file(first)[key]}, str(second))
    _refused(twice, key, first.name, second.name)
    lying = shutil.copytree(whole, tmp_path / "lying")
    cut_in_shards(lying)
    index = lying / "model.safetensors.index.json"
    mapping = json.loads(index.read_text())["weight_map"]
    edit_json(index, weight_map=mapping | {"model.ghost": "model-00001-of-00002.safetensors"})
    _refused(lying, "model.ghost")


def test_a_path_that_is_nothing(tmp_path: Path) -> None:
    _refused(tmp_path / "nowhere", "nowhere", "not a directory")
    (tmp_path / "empty").mkdir()
    _refused(tmp_path / "empty", "config.json", "missing")


def test_a_hub_id_is_looked_up_in_the_offline_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    commit = "0123456789abcdef0123456789abcdef01234567"
    home = tmp_path / "hub" / "models--owner--tiny"
    write_checkpoint(home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    traits = load_target("owner/tiny").traits
    assert (traits.name, traits.revision) == ("owner/tiny", "main")
    assert load_target("owner/tiny", revision=commit).traits.revision == commit
    with pytest.raises(ValueError, match="owner/absent"):
        load_target("owner/absent")


def test_tied_without_a_stored_head_uses_the_embedding(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    embedding = load_file(folder / "model.safetensors")["model.embed_tokens.weight"]
    hidden = torch.randn(32)
    logits = load_target(folder).logits(hidden)
    kept = logits.isfinite()
    torch.testing.assert_close(logits[kept], (embedding @ hidden)[kept])


def test_untied_without_a_head_is_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, tied=False, weights=lambda w: w.pop("lm_head.weight"))  # type: ignore[arg-type,return-value]
    _refused(folder, "lm_head.weight", "missing")


def test_tied_with_another_head_stored_warns_and_uses_the_embedding(tmp_path: Path) -> None:
    plain = write_checkpoint(tmp_path / "plain")
    size = load_file(plain / "model.safetensors")["model.embed_tokens.weight"].shape
    other = write_checkpoint(tmp_path / "other", weights=lambda w: w.update({"lm_head.weight": torch.ones(size)}))
    hidden = torch.randn(32)
    with pytest.warns(UserWarning, match=r"lm_head\.weight differs; the embedding is used"):
        target = load_target(other)
    assert torch.equal(target.logits(hidden), load_target(plain).logits(hidden))
    same = write_checkpoint(
        tmp_path / "same", weights=lambda w: w.update({"lm_head.weight": w["model.embed_tokens.weight"].clone()})
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_target(same)


@pytest.mark.parametrize(
    "names",
    [
        {"dtype": "bfloat16"},
        {"dtype": ..., "torch_dtype": "bfloat16"},
        {"dtype": "bfloat16", "torch_dtype": "torch.bfloat16"},
        {"dtype": ...},
    ],
)
def test_either_name_of_the_stored_dtype(tmp_path: Path, names: dict[str, Any]) -> None:
    target = load_target(write_checkpoint(tmp_path, config=names))
    assert target.traits.dtype == "float32"


def test_conflicting_and_unknown_dtypes(tmp_path: Path) -> None:
    conflict = {"dtype": "bfloat16", "torch_dtype": "float32"}
    _refused(write_checkpoint(tmp_path / "a", config=conflict), "dtype", "bfloat16", "float32")
    _refused(write_checkpoint(tmp_path / "b", config={"dtype": "float7"}), "float7", "allowed")
    with pytest.raises(ValueError, match="float7"):
        load_target(write_checkpoint(tmp_path / "c"), dtype="float7")


def test_half_precision_on_the_cpu(tmp_path: Path) -> None:
    """float16 is refused by name; bfloat16 gives finite float32 logits even near float16's largest number."""
    folder = write_checkpoint(tmp_path, config={"dtype": "bfloat16"})
    with pytest.raises(ValueError, match=r"float16.*cpu"):
        load_target(folder, dtype="float16")
    logits = load_target(folder, dtype="bfloat16").logits(torch.full((4, 32), 65504.0, dtype=torch.bfloat16))
    assert logits.dtype == torch.float32
    finite = logits.isfinite()
    assert finite.sum(-1).eq(logits.shape[-1] - 1 - PADDED).all()
    assert not logits.softmax(-1).isnan().any()


@pytest.mark.parametrize("mask", [300, -1, None, "<|mask|>", True])
def test_a_mask_id_outside_the_vocabulary(tmp_path: Path, mask: object) -> None:
    folder = write_checkpoint(tmp_path, config={"mask_token_id": mask if mask != 300 else 100_000})
    _refused(folder, "mask_token_id", "allowed")


def test_a_mask_id_that_is_an_end_token_or_an_ordinary_word(tmp_path: Path) -> None:
    _refused(write_checkpoint(tmp_path / "a", config={"mask_token_id": END}), "mask_token_id", str(END), "end token")
    _refused(write_checkpoint(tmp_path / "b", config={"mask_token_id": 40}), "mask_token_id", "40", "ordinary token")


def test_the_mask_id_falls_back_to_the_tokenizer(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, config={"mask_token_id": ...})
    assert inspect_checkpoint(folder).mask_id == MASK
    edit_json(folder / "tokenizer_config.json", mask_token=...)
    _refused(folder, "mask_token", "None")


def test_a_tokenizer_that_reaches_beyond_the_embedding(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    size = inspect_checkpoint(folder).vocab_size
    path = folder / "tokenizer.json"
    data = json.loads(path.read_text())
    data["added_tokens"].append({**data["added_tokens"][-1], "id": size, "content": "<|beyond|>"})
    path.write_text(json.dumps(data))
    _refused(folder, str(size), "<|beyond|>", "vocab_size")


def test_padded_ids_are_never_candidates_and_decode_to_nothing(tmp_path: Path) -> None:
    flat = write_checkpoint(tmp_path, tied=False, weights=lambda w: w["lm_head.weight"].zero_())  # type: ignore[arg-type,return-value]
    target = load_target(flat)
    logits = target.logits(torch.ones(2, 32))
    size = target.traits.vocab_size
    assert logits[:, size - PADDED :].isneginf().all()
    assert logits[:, MASK].isneginf().all()
    assert logits.isneginf().sum() == 2 * (PADDED + 1)
    assert target.decode([size - 1, size - PADDED]) == ""


def test_start_checks_lengths_and_ids(tmp_path: Path) -> None:
    target = load_target(write_checkpoint(tmp_path))
    with pytest.raises(ValueError, match="63 tokens plus 2 new tokens is 65 positions; allowed are 64"):
        target.start([5] * 63, block_length=4, max_new_tokens=2)
    assert target.start([5] * 63, block_length=4, max_new_tokens=1).prefix_length == 60
    assert target.start([], block_length=4, max_new_tokens=8).prefix_length == 0
    with pytest.raises(ValueError, match="prompt id -1"):
        target.start([5, -1], block_length=4, max_new_tokens=1)


def test_a_session_checks_its_blocks(tmp_path: Path) -> None:
    session = load_target(write_checkpoint(tmp_path)).start([5], block_length=4, max_new_tokens=7)
    with pytest.raises(ValueError, match="width 3"):
        session.forward(torch.full((1, 3), MASK))
    with pytest.raises(ValueError, match=r"shape \(5,\)"):
        session.commit(torch.full((5,), 9))
    with pytest.raises(ValueError, match="width 3"):
        session.forward(torch.full((1, 4), MASK), torch.full((1, 3), 9))
    with pytest.raises(ValueError, match="2 filled blocks in front of 1 copies"):
        session.forward(torch.full((1, 4), MASK), torch.full((2, 4), 9))
    for forwarded in (False, True):
        session.commit(torch.full((4,), 9))
        if forwarded:
            session.forward(torch.full((1, 4), MASK))
    with pytest.raises(ValueError, match="full: 8 of 8"):
        session.commit(torch.full((4,), 9))
