"""Ids from the tokenizer files of a checkpoint, read without torch: what can be emitted, where a text ends, the mask.

An id beyond the embedding, a mask that is an ordinary word or an end token: each is one ValueError with file, value and
what is allowed, before anything is loaded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.targets.files import listed, read_json

ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
LISTS = ("additional_special_tokens", "extra_special_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFacts:
    """Mask and end ids, and the ids of the embedding that no token has (`absent_ids`)."""

    mask_id: int
    stop_ids: tuple[int, ...]
    absent_ids: tuple[int, ...]


def token_facts(
    folder: Path,
    config: Mapping[str, Any],
    vocab_size: int,
    *,
    ends: Iterable[str] = (),
    published_mask: int | None = None,
) -> TokenFacts:
    """Facts of a checkpoint's tokens. `ends` are tokens that end an answer beside the named end ids, where the
    tokenizer has them; `published_mask` is the mask id where neither config nor tokenizer names one.
    """
    words, added = token_ids(folder)
    beyond = {token: i for token, i in words.items() if i >= vocab_size}
    if beyond:
        token, i = max(beyond.items(), key=lambda item: item[1])
        raise ValueError(f"{folder}: the tokenizer can emit id {i} ({token!r}); vocab_size is {vocab_size}")
    new = [token for token in named_tokens(folder) if token not in words]
    last = max(len(words), max(added.values(), default=-1) + 1) + len(new) - 1
    if new and last >= vocab_size:
        path = folder / "tokenizer_config.json"
        named = f"{path}: {listed([repr(token) for token in new])} are not in the vocabulary"
        raise ValueError(f"{named}; as new tokens they take ids up to {last}, vocab_size is {vocab_size}")
    stop_ids = _stop_ids(folder, config, words, vocab_size, ends)
    return TokenFacts(
        mask_id=_mask_id(folder, config, words, added, stop_ids, vocab_size, published_mask),
        stop_ids=stop_ids,
        absent_ids=tuple(sorted(set(range(vocab_size)) - set(words.values()))),
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


def named_tokens(folder: Path) -> list[str]:
    """The special tokens that the tokenizer config names, which a tokenizer without them is given."""
    config = read_json(folder / "tokenizer_config.json", required=False)
    values = [config.get(role) for role in ROLES]
    for name in LISTS:
        held = config.get(name) or []
        values += held.values() if isinstance(held, dict) else held if isinstance(held, list) else []
    texts = (value.get("content") if isinstance(value, dict) else value for value in values)
    return list(dict.fromkeys(text for text in texts if isinstance(text, str) and text))


def _stop_ids(
    folder: Path, config: Mapping[str, Any], words: Mapping[str, int], vocab_size: int, ends: Iterable[str]
) -> tuple[int, ...]:
    """Union of the end ids of generation config, config and tokenizer, and the ids of `ends`."""
    found = {words[token] for token in ends if token in words}
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
    published: int | None,
) -> int:
    if "mask_token_id" in config:
        mask, source = config["mask_token_id"], f"{folder / 'config.json'}: mask_token_id"
    else:
        mask, source = words.get(str(special_token(folder, "mask_token"))), f"{folder}: the tokenizer's mask_token"
        if mask is None and published is not None:
            mask, source = published, f"{folder}: the family's published mask id"
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
