"""A byte-level BPE of a few hundred tokens, trained on generated examples, with the chat template of the tiny targets.

Digits stay single tokens (with or without the space before them), so that every two-digit number is two tokens. Words
are split off before merging, and merging goes on until each word of the examples is one token: phrasings of equal
length in words are of equal length in tokens. What a word takes along (the space before or behind it, or all blanks,
line breaks and indentation too) differs from model to model, and so do their vocabularies. Marks stay on their own:
where words took them along, phrasings differed in length, and positions filled early did not fit what came after.
"""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

BEGIN, END, MASK, USER, ASSISTANT = "<|begin|>", "<|end|>", "<|mask|>", "<|user|>", "<|assistant|>"
SPECIALS = (BEGIN, END, MASK, USER, ASSISTANT)
WORDS = {
    "space before": r" ?\p{L}+| ?\d| ?[^\s\p{L}\d]+|\s+(?!\S)|\s+",
    "space behind": r"\p{L}+ ?|\d ?|[^\s\p{L}\d]+ ?|\s+",
    "blank before": r"\s*\p{L}+|\s*\d|\s*[^\s\p{L}\d]+|\s+",
    "blank behind": r"\p{L}+\s*|\d\s*|[^\s\p{L}\d]+\s*|\s+",
}
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'user' %}<|user|>{{ message['content'] }}"
    "{% elif message['role'] == 'assistant' %}<|assistant|>{{ message['content'] }}<|end|>"
    "{% else %}{{ raise_exception('only the roles user and assistant are known') }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def train_tokenizer(texts: Iterable[str], *, limit: int = 1024, words: str = "space before") -> PreTrainedTokenizerFast:
    """A tokenizer whose merges make each word of `texts` (cut as `WORDS[words]` says) one token, as far as `limit` ids
    allow.
    """
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS[words]), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=limit,
        min_frequency=1,
        special_tokens=list(SPECIALS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token=BEGIN, eos_token=END, mask_token=MASK, clean_up_tokenization_spaces=False
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def save_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write tokenizer files and chat template in the published layout."""
    tokenizer.save_pretrained(str(folder))
