"""Random masking of tokens for masked language models."""

from collections.abc import Sequence

import numpy as np

from keras_attn.tokenizers import Tokenizer, WordPieceTokenizer
from keras_attn.validation import UserError, require

SHARE = 0.15
_MASKED, _RANDOM = 0.8, 0.1  # of the chosen tokens; the others are unchanged


class Masking:
    """Chooses and hides the tokens that a model learns to predict, as BERT does.

    15% of the tokens that are not special are chosen, at least one. 80% of them become `[MASK]`,
    10% become a random token that is not special, and 10% are unchanged.

    Args:
        tokenizer: Tokenizer of the texts.
        whole_words: Whether all pieces of a word are chosen together. Words are taken in random
            order as long as they fit into the 15%, so that no token may be chosen in a short text
            of long words.

    Raises:
        UserError: The tokenizer has no mask token, or no pieces of words for `whole_words`.

    Examples:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]
        >>> masking = Masking(WordPieceTokenizer(tokens))
        >>> ids, positions, labels = masking.drawn(np.array([2, 5, 6, 7, 3]), seed=[0])
        >>> ids.tolist(), positions.tolist(), labels.tolist()
        ([2, 5, 6, 4, 3], [3], [7])

    Reference:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805, section 3.1; whole words as in
        `create_pretraining_data.py` of google-research/bert.
    """

    def __init__(self, tokenizer: Tokenizer, whole_words: bool = False):
        self._mask_id = require_mask_token(tokenizer)
        self.tokenizer = tokenizer
        self.whole_words = bool(whole_words)
        self._is_special = tokenizer.is_special
        self._is_continued = tokenizer.is_continued
        require(
            not whole_words or isinstance(tokenizer, WordPieceTokenizer),
            "Whole words are hidden where tokens are pieces of words: the kind word_piece.",
            whole_words=whole_words,
            tokenizer=tokenizer.kind,
        )
        self._ordinary = np.flatnonzero(~self._is_special).astype(np.int32)

    def most(self, length: int) -> int:
        """Most tokens that are chosen of a text with so many tokens."""
        return max(1, round(SHARE * length))

    def drawn(
        self, ids: np.ndarray, seed: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hides tokens of one text.

        Args:
            ids: Its ids, int32 (length,).
            seed: Integers; the same integers and ids always give the same result.

        Returns:
            The ids with masks, the positions to predict in ascending order, (count,) int32, and
            the original ids at these positions, (count,).
        """
        generator = np.random.default_rng(seed)
        chosen = np.sort(self._chosen(ids, generator)).astype(np.int32)
        labels = ids[chosen]
        fates = generator.random(len(chosen))
        others = self._ordinary[generator.integers(len(self._ordinary), size=len(chosen))]
        shown = np.where(fates < _MASKED + _RANDOM, others, labels)
        masked = ids.copy()
        masked[chosen] = np.where(fates < _MASKED, self._mask_id, shown)
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


def require_mask_token(tokenizer: Tokenizer) -> int:
    """Raises unless a tokenizer has a mask token that texts can contain.

    Args:
        tokenizer: A tokenizer of any kind.

    Returns:
        The id of the mask token.

    Raises:
        UserError: The tokenizer has no mask token, or does not recognize it in a text.

    Examples:
        >>> require_mask_token(CharacterTokenizer("abc"))
        Traceback (most recent call last):
            ...
        keras_attn.validation.UserError: A masked language model needs a tokenizer with a mask ...
    """
    if tokenizer.mask_id is None:
        raise UserError(
            "A masked language model needs a tokenizer with a mask token: the kind word_piece, or "
            "symbols, characters or byte_level_bpe with `with_mask`. "
            f"Received: tokenizer={tokenizer.kind!r}."
        )
    splits = getattr(tokenizer, "split_special_tokens", False)
    require(
        not splits,
        "The tokenizer must recognize the mask token in a text (`split_special_tokens=False`).",
        split_special_tokens=splits,
    )
    return tokenizer.mask_id
