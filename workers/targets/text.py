"""From prompts to ids and back: the checkpoint's own tokenizer and chat template.

The template comes from `chat_template.jinja` or the tokenizer config; without one the prompt goes in raw. Exactly one
beginning-of-sequence id leads the ids, whether template, tokenizer or both would add it.
"""

from collections.abc import Sequence
from pathlib import Path

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerFast, Qwen2Tokenizer

from sweeps.paths import cut
from workers.targets.template import chat_template, template_file


class ChatText:
    """Immutable. `hidden_ids` (mask and stop ids) never show in decoded text, special or not."""

    def __init__(self, folder: Path, hidden_ids: Sequence[int], vocab_size: int) -> None:
        self._tokenizer = _load(folder)
        token, last = max(self._tokenizer.get_vocab().items(), key=lambda item: item[1], default=("", -1))
        if last >= vocab_size:
            raise ValueError(f"{folder}: the tokenizer can emit id {last} ({cut(token)!r}); vocab_size is {vocab_size}")
        self._file = template_file(folder)
        self._template = chat_template(folder)
        self._hidden = frozenset(hidden_ids)
        adds = self._tokenizer("").input_ids
        self._bos = adds[0] if adds and adds[0] == self._tokenizer.bos_token_id else None
        self.encode("probe")

    def encode(self, prompt: str) -> list[int]:
        """Ids of a user prompt with the generation prompt behind it. Raises ValueError, naming the template's file,
        when that refuses the message or fails on it.
        """
        if self._template is None:
            text = prompt
        else:
            messages = [{"role": "user", "content": prompt}]
            try:
                text = self._tokenizer.apply_chat_template(
                    messages, chat_template=self._template, tokenize=False, add_generation_prompt=True
                )
            except Exception as error:  # a template can raise whatever Python can
                said = f"{type(error).__name__}: {error}"
                does = f"refuses a user message ({error})" if type(error) is TemplateError else f"fails ({said})"
                raise ValueError(f"{self._file}: chat template: {' '.join(cut(does).split())}") from error
        ids: list[int] = self._tokenizer(text, add_special_tokens=False).input_ids
        return ids if self._bos is None or ids[:1] == [self._bos] else [self._bos, *ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the ids without special tokens, stop ids, mask ids and ids the tokenizer does not know."""
        known = [i for i in ids if i not in self._hidden and i < len(self._tokenizer)]
        text: str = self._tokenizer.decode(known, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


def _load(folder: Path) -> PreTrainedTokenizerFast:
    """From `tokenizer.json`, else from the vocabulary and merges of the Qwen family."""
    file = folder / "tokenizer.json"
    kind, file = (PreTrainedTokenizerFast, file) if file.is_file() else (Qwen2Tokenizer, folder / "vocab.json")
    try:
        return kind.from_pretrained(str(folder))
    except Exception as error:  # the library behind it raises bare ones
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"{file}: the tokenizer cannot be loaded ({cut(said)})") from error
