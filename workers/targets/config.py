"""The config.json of an SDAR checkpoint, checked field by field without torch.

A missing, mistyped or unsupported field is one ValueError with the field, its value and what is allowed. `block_size`
is not read: published values are unreliable, and the experiment sets the block length. Ids (mask, stops) are resolved
against the tokenizer files, so that an id beyond the embedding is refused before anything is loaded.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.targets.files import read_json
from workers.targets.shape import BodyShape

ARCHITECTURE = "SDARForCausalLM"
DTYPES = ("float64", "float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True, kw_only=True)
class SdarConfig:
    """What the config and the tokenizer files say: shape, ids, limits. `stored_dtype` is "" when the config is
    silent.
    """

    shape: BodyShape
    max_positions: int
    mask_id: int
    stop_ids: tuple[int, ...]
    absent_ids: tuple[int, ...]
    stored_dtype: str


def read_config(folder: Path) -> SdarConfig:
    """Read and check `config.json`, `generation_config.json` and the tokenizer files of a checkpoint folder."""
    path = folder / "config.json"
    config = read_json(path)
    names = config.get("architectures")
    if names != [ARCHITECTURE]:
        raise ValueError(f"{path}: architectures is {names!r}; allowed is [{ARCHITECTURE!r}]")
    for field, allowed in (
        ("hidden_act", ("silu",)),
        ("attention_bias", (False, None)),
        ("use_sliding_window", (False, None)),
    ):
        if config.get(field, allowed[-1]) not in allowed:
            raise ValueError(f"{path}: {field} is {config[field]!r}; allowed is {allowed[0]!r}")
    shape = BodyShape(
        vocab_size=_whole(config, "vocab_size", path),
        hidden=_whole(config, "hidden_size", path),
        layers=_whole(config, "num_hidden_layers", path),
        heads=_whole(config, "num_attention_heads", path),
        kv_heads=_whole(config, "num_key_value_heads", path),
        head_dim=_whole(config, "head_dim", path),
        mlp=_whole(config, "intermediate_size", path),
        norm_eps=_number(config, "rms_norm_eps", path),
        rope_theta=_rope_theta(config, path),
        tied=_flag(config, "tie_word_embeddings", path),
    )
    if shape.heads % shape.kv_heads:
        raise ValueError(f"{path}: num_key_value_heads is {shape.kv_heads}; allowed are divisors of {shape.heads}")
    if shape.head_dim % 2:
        raise ValueError(f"{path}: head_dim is {shape.head_dim}; allowed is an even number")
    words, added = token_ids(folder)
    beyond = {token: i for token, i in words.items() if i >= shape.vocab_size}
    if beyond:
        token, i = max(beyond.items(), key=lambda item: item[1])
        raise ValueError(f"{folder}: the tokenizer can emit id {i} ({token!r}); vocab_size is {shape.vocab_size}")
    stop_ids = _stop_ids(folder, config, words, shape.vocab_size)
    return SdarConfig(
        shape=shape,
        max_positions=_whole(config, "max_position_embeddings", path),
        mask_id=_mask_id(folder, config, words, added, stop_ids, shape.vocab_size),
        stop_ids=stop_ids,
        absent_ids=tuple(sorted(set(range(shape.vocab_size)) - set(words.values()))),
        stored_dtype=_stored_dtype(config, path),
    )


def token_ids(folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Every token a tokenizer can emit with its id, and the added (special) ones among them.

    From `tokenizer.json`, else from `vocab.json` with `added_tokens.json` and the tokenizer config.
    """
    path = folder / "tokenizer.json"
    if path.is_file():
        data = read_json(path)
        model, listed = data.get("model"), data.get("added_tokens") or []
        vocab = _vocab(model.get("vocab") if isinstance(model, dict) else None, "model.vocab", path)
        if not isinstance(listed, list):
            raise ValueError(f"{path}: added_tokens is {listed!r}; allowed is a list of objects")
        added = dict(
            _added_token(token, token.get("id") if isinstance(token, dict) else None, f"{path}: added_tokens[{at}]")
            for at, token in enumerate(listed)
        )
    elif (folder / "vocab.json").is_file():
        vocab = _vocab(read_json(folder / "vocab.json"), "the vocabulary", folder / "vocab.json")
        path = folder / "tokenizer_config.json"
        decoder = read_json(path, required=False).get("added_tokens_decoder") or {}
        if not isinstance(decoder, dict):
            raise ValueError(f"{path}: added_tokens_decoder is {decoder!r}; allowed is an object of ids to tokens")
        added = dict(
            _added_token(token, int(i) if i.isdecimal() else i, f"{path}: added_tokens_decoder.{i}")
            for i, token in decoder.items()
        )
        path = folder / "added_tokens.json"
        added |= _vocab(read_json(path, required=False), "the added tokens", path)
    else:
        raise ValueError(f"{folder}: no tokenizer; allowed are tokenizer.json, or vocab.json with merges.txt")
    return vocab | added, added


def _vocab(value: object, field: str, path: Path) -> dict[str, int]:
    if not isinstance(value, dict):
        raise ValueError(f"{path}: {field} is {type(value).__name__}; allowed is an object of tokens to ids")
    for token, i in value.items():
        if type(i) is not int or i < 0:
            raise ValueError(f"{path}: the id of {token!r} is {i!r}; allowed is a whole number from 0")
    return value


def _added_token(token: object, i: object, where: str) -> tuple[str, int]:
    content = token.get("content") if isinstance(token, dict) else None
    if not isinstance(content, str) or type(i) is not int or i < 0:
        raise ValueError(
            f"{where} is {token!r} with id {i!r}; allowed is an object with content (text) and id (from 0)"
        )
    return content, i


def special_token(folder: Path, role: str) -> str | None:
    """The text of a special token (`eos_token`, `mask_token`, `bos_token`) by the tokenizer files, if there is one."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        value = read_json(folder / name, required=False).get(role)
        if value:
            text = value.get("content") if isinstance(value, Mapping) else value
            if not isinstance(text, str):
                raise ValueError(f"{folder / name}: {role} is {value!r}; allowed is text, or an object with content")
            return text
    return None


def _stop_ids(folder: Path, config: Mapping[str, Any], words: Mapping[str, int], vocab_size: int) -> tuple[int, ...]:
    """Union of the end ids of generation config, config and tokenizer."""
    found: set[int] = set()
    generation = read_json(folder / "generation_config.json", required=False)
    for name, value in (
        ("generation_config.json", generation.get("eos_token_id")),
        ("config.json", config.get("eos_token_id")),
    ):
        for i in value if isinstance(value, list) else [] if value is None else [value]:
            if not _is_id(i, vocab_size):
                raise ValueError(f"{folder / name}: eos_token_id is {value!r}; allowed are ids in 0..{vocab_size - 1}")
            found.add(i)
    eos = special_token(folder, "eos_token")
    if eos in words:
        found.add(words[str(eos)])
    if not found:
        raise ValueError(f"{folder}: no end token; eos_token_id is absent or null and the tokenizer has no eos_token")
    return tuple(sorted(found))


def _mask_id(
    folder: Path,
    config: Mapping[str, Any],
    words: Mapping[str, int],
    added: Mapping[str, int],
    stops: Iterable[int],
    vocab_size: int,
) -> int:
    if "mask_token_id" in config:
        mask, source = config["mask_token_id"], f"{folder / 'config.json'}: mask_token_id"
    else:
        mask, source = words.get(str(special_token(folder, "mask_token"))), f"{folder}: the tokenizer's mask_token"
    if not _is_id(mask, vocab_size):
        raise ValueError(f"{source} is {mask!r}; allowed is an id in 0..{vocab_size - 1}")
    if mask in stops:
        raise ValueError(f"{source} is {mask}, which is also an end token; allowed is an id of its own")
    if mask in words.values() and mask not in added.values():
        word = next(token for token, i in words.items() if i == mask)
        raise ValueError(f"{source} is {mask}, the ordinary token {word!r}; allowed is an added token or an unused id")
    return int(mask)


def _is_id(value: object, vocab_size: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < vocab_size


def _stored_dtype(config: Mapping[str, Any], path: Path) -> str:
    named = {
        field: str(config[field]).removeprefix("torch.")
        for field in ("dtype", "torch_dtype")
        if config.get(field) is not None
    }
    for field, value in named.items():
        if value not in DTYPES:
            raise ValueError(f"{path}: {field} is {config[field]!r}; allowed are {', '.join(DTYPES)}")
    if len(set(named.values())) > 1:
        raise ValueError(
            f"{path}: dtype is {config['dtype']!r} but torch_dtype is {config['torch_dtype']!r}; they must agree"
        )
    return next(iter(named.values()), "")


def _rope_theta(config: Mapping[str, Any], path: Path) -> float:
    """From `rope_theta`, or from `rope_parameters` as newer configs spell it. Scaled rotary embeddings are refused."""
    for field in ("rope_parameters", "rope_scaling"):
        if not isinstance(config.get(field), Mapping | None):
            raise ValueError(f"{path}: {field} is {config[field]!r}; allowed is an object or null")
    newer = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = newer.get("rope_type", newer.get("type", "default"))
    if kind != "default":
        raise ValueError(f"{path}: rope type is {kind!r}; allowed is 'default'")
    return _number(config if "rope_theta" in config else newer, "rope_theta", path)


def _present(config: Mapping[str, Any], field: str, path: Path) -> Any:
    if field not in config:
        raise ValueError(f"{path}: {field} is missing")
    return config[field]


def _whole(config: Mapping[str, Any], field: str, path: Path) -> int:
    value = _present(config, field, path)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{path}: {field} is {value!r}; allowed is a whole number from 1")
    return value


def _number(config: Mapping[str, Any], field: str, path: Path) -> float:
    value = _present(config, field, path)
    try:
        number = float(value) if type(value) in (int, float) else math.nan
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{path}: {field} is {value!r}; allowed is a positive finite number")
    return number


def _flag(config: Mapping[str, Any], field: str, path: Path) -> bool:
    value = _present(config, field, path)
    if not isinstance(value, bool):
        raise ValueError(f"{path}: {field} is {value!r}; allowed is true or false")
    return value
