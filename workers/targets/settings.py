"""The small files of a checkpoint that decide its output beside the weights: config, tokenizer, chat template.

An edited template asks other prompts, an edited config computes other numbers, so their digest is part of a cell's
identity as the weights' is. Read without torch.
"""

import hashlib
from pathlib import Path

SETTINGS = (
    "added_tokens.json",
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
)


def settings_digest(folder: Path) -> str:
    """Sha256 (hex) over name and content of each of `SETTINGS` that is there."""
    total = hashlib.sha256()
    for name in SETTINGS:
        if (folder / name).is_file():
            total.update(name.encode() + hashlib.sha256((folder / name).read_bytes()).digest())
    return total.hexdigest()
