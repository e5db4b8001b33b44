"""Which tokens of a text are to be guessed, and what stands in their places."""

from collections.abc import Sequence

import numpy as np

from keras_attn.tokenizers import Tokenizer, WordPieceTokenizer
from keras_attn.validation import require

SHARE = 0.15
_MASKED, _RANDOM = 0.8, 0.1  # of those to be guessed; the rest stay as they are


class Masking:
    """Draws what is to be guessed of a text, as BERT does.

    Of the tokens that are not special 15% are chosen, at least one. Of these 80% become `[MASK]`,
    10% any token that is not special, and 10% stay.

    Args:
        tokenizer: Of the texts.
        whole_words: Whether all pieces of a word are chosen together. Words are taken in random
            order as long as they fit into the 15%, so that a short text of long words may have
            nothing to guess.

    Raises:
        UserError: The tokenizer has no mask token.

    Reference:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805, section 3.1; whole words as in
        `create_pretraining_data.py` of google-research/bert.
    """

    def __init__(self, tokenizer: Tokenizer, whole_words: bool = False):
        require_mask_token(tokenizer)
        self.tokenizer = tokenizer
        self.whole_words = bool(whole_words)
        self._is_special = tokenizer.is_special
        self._is_continued = tokenizer.is_continued
        self._ordinary = np.flatnonzero(~self._is_special).astype(np.int32)

    def most(self, length: int) -> int:
        """Most tokens that are chosen of a text with so many tokens."""
        return max(1, round(SHARE * length))

    def drawn(
        self, ids: np.ndarray, seed: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draws what is to be guessed of one text.

        Args:
            ids: Its ids, int32 (length,).
            seed: Whole numbers; the same ones, and the same ids, always draw the same.

        Returns:
            The ids with masks, the positions that are to be guessed in rising order, (count,)
            int32, and the ids that belong there, (count,).
        """
        generator = np.random.default_rng(seed)
        chosen = np.sort(self._chosen(ids, generator)).astype(np.int32)
        labels = ids[chosen]
        fates = generator.random(len(chosen))
        others = self._ordinary[generator.integers(len(self._ordinary), size=len(chosen))]
        shown = np.where(fates < _MASKED + _RANDOM, others, labels)
        masked = ids.copy()
        masked[chosen] = np.where(fates < _MASKED, self.tokenizer.mask_id, shown)
        return masked, chosen, labels

    def _chosen(self, ids: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        places = np.flatnonzero(~self._is_special[ids])
        if not len(places):
            return places
        count = self.most(len(places))
        if not self.whole_words:
            return generator.choice(places, count, replace=False)
        goes_on = self._is_continued[ids[places]] & (np.diff(places, prepend=-2) == 1)
        words = np.split(places, np.flatnonzero(~goes_on)[1:])
        chosen: list[int] = []
        for number in generator.permutation(len(words)):
            if len(chosen) + len(words[number]) <= count:
                chosen.extend(words[number])
        return np.array(chosen, np.int64)


def require_mask_token(tokenizer: Tokenizer) -> None:
    """Raises unless texts may have gaps for a tokenizer.

    Raises:
        UserError: The tokenizer has no mask token, or does not know it in a text.
    """
    require(
        isinstance(tokenizer, WordPieceTokenizer),
        "A masked language model needs a tokenizer with a mask token: word_piece.",
        tokenizer=tokenizer.kind,
    )
    require(
        not tokenizer.split_special_tokens,
        "The tokenizer must know a mask that is spelled out in a text.",
        split_special_tokens=tokenizer.split_special_tokens,
    )
