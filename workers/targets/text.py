"""From prompts to ids and back: the checkpoint's own tokenizer and chat template.

The template comes from `chat_template.jinja` or the tokenizer config; without one the prompt goes in raw. Exactly one
beginning-of-sequence id leads the ids, whether template, tokenizer or both would add it.
"""

from collections.abc import Sequence
from pathlib import Path

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerFast, Qwen2Tokenizer

from workers.targets.inspect import chat_template


class ChatText:
    """Immutable. `hidden_ids` (mask and stop ids) never show in decoded text, special or not."""

    def __init__(self, folder: Path, hidden_ids: Sequence[int]) -> None:
        self._tokenizer = _load(folder)
        self._template = chat_template(folder)
        self._hidden = frozenset(hidden_ids)
        adds = self._tokenizer("").input_ids
        self._bos = adds[0] if adds and adds[0] == self._tokenizer.bos_token_id else None
        self.encode("probe")

    def encode(self, prompt: str) -> list[int]:
        """Ids of a user prompt with the generation prompt behind it. Raises ValueError when the template refuses."""
        if self._template is None:
            text = prompt
        else:
            messages = [{"role": "user", "content": prompt}]
            try:
                text = self._tokenizer.apply_chat_template(
                    messages, chat_template=self._template, tokenize=False, add_generation_prompt=True
                )
            except TemplateError as error:
                raise ValueError(f"chat template: refuses a user message ({error})") from error
        ids: list[int] = self._tokenizer(text, add_special_tokens=False).input_ids
        return ids if self._bos is None or ids[:1] == [self._bos] else [self._bos, *ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the ids without special tokens, stop ids, mask ids and ids the tokenizer does not know."""
        known = [i for i in ids if i not in self._hidden and i < len(self._tokenizer)]
        text: str = self._tokenizer.decode(known, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


def _load(folder: Path) -> PreTrainedTokenizerFast:
    """From `tokenizer.json`, else from the vocabulary and merges of the Qwen family."""
    kind = PreTrainedTokenizerFast if (folder / "tokenizer.json").is_file() else Qwen2Tokenizer
    try:
        return kind.from_pretrained(str(folder))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder}: the tokenizer cannot be loaded ({error})") from error
