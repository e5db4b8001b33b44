"""Exported tasks that generate text."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from keras_attn.generation import SamplingRules, check_seed
from keras_attn.tasks.exported.base import Exported, check_exported
from keras_attn.tasks.hypothesis import (
    COLUMNS,
    SCORE_COLUMNS,
    Hypothesis,
    best_text,
    found_hypotheses,
    perplexity_of,
)
from keras_attn.tasks.texts import check_pairs, check_texts
from keras_attn.validation import UserError, require, require_one_of, require_positive


class ExportedSeq2Seq(Exported):
    """An exported `Seq2SeqTask`, as `open_exported` and `keras_attn.load` return it.

    Examples:
        >>> task = open_exported("saved_models/g2p_en")
        >>> task.predict(["attention"])
        ['AH T EH N SH AH N']
    """

    kind = "seq2seq"
    needs = frozenset({"n_best", "score"})

    def predict(self, texts: Sequence[str], beams: int | None = None, **settings: Any) -> list[str]:
        """Generates the most probable text for each input (see `Seq2SeqTask.predict`)."""
        found = self.predict_n_best(texts, 1, beams, **settings)
        return [best_text(hypotheses) for hypotheses in found]

    def generate(
        self, texts: Sequence[str], beams: int | None = None, **settings: Any
    ) -> list[str]:
        """Generates the most probable text for each input; the same as `predict`."""
        return self.predict(texts, beams, **settings)

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
        prefixes: Sequence[str] | None = None,
        **settings: Any,
    ) -> list[list[Hypothesis]]:
        """Generates several hypotheses for each text (see `Seq2SeqTask.predict_n_best`).

        Raises:
            UserError: `beams`, `prefixes` or another setting is given, which an export does not
                support; a text is too long; or `n_best` exceeds that of the export.
        """
        require_positive(n_best=n_best)
        require(prefixes is None, "An export does not support prefixes.", prefixes=prefixes)
        texts = check_texts("texts", texts)
        for name, value in {"beams": beams, **settings}.items():
            require(
                value is None,
                f"The {name} of an exported model cannot be changed.",
                **{name: value},
            )

        def columns(outputs):
            columns = [outputs[name] for name in COLUMNS]
            if n_best == 1:
                columns = [column[:, None] for column in columns]
            check_exported(n_best, columns[0])
            return [column[:, :n_best] for column in columns]

        signature = "serving_default" if n_best == 1 else "n_best"
        rows = self._in_batches(signature, columns, progress, text=texts)
        return [found_hypotheses(*row) for row in rows]

    def sample(
        self,
        texts: Sequence[str],
        samples: int = 1,
        seed: int = 0,
        first_number: int = 0,
        progress: Callable[[int], None] | None = None,
        **settings: Any,
    ) -> list[list[Hypothesis]]:
        """Samples a text for each input text (see `CausalLMTask.sample`).

        The same seed gives the same texts as the task. `settings` are `temperature` (1 by default),
        `top_k` (no limit by default) and `top_p` (1 by default).

        Raises:
            UserError: The export is not of a language model, `samples` is not 1, another setting is
                given, or a text is too long.
        """
        require(
            "sample" in self._model.signatures,
            "Only exported language models can sample: use the run or the task folder.",
            folder=str(self.folder),
        )
        require(samples == 1, "An export samples one text at a time.", samples=samples)
        names = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
        for name in settings:
            require_one_of("setting", name, names)
        values = names | {name: value for name, value in settings.items() if value is not None}
        SamplingRules(**values)
        check_seed(seed)
        texts = check_texts("texts", texts)
        rows = self._in_batches(
            "sample",
            lambda outputs: [outputs[name][:, None] for name in COLUMNS],
            progress,
            text=texts,
            seed=[seed + ((first_number + place) << 32) for place in range(len(texts))],
            **{name: [value] * len(texts) for name, value in values.items()},
        )
        return [found_hypotheses(*row) for row in rows]

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Computes the log-probability of each target (see `Seq2SeqTask.score`)."""
        return [log_probability for log_probability, _ in self._scores(sources, targets)]

    def perplexity(self, sources: Sequence[str], targets: Sequence[str]) -> float:
        """Computes the per-token perplexity of the targets, including end tokens."""
        return perplexity_of(self._scores(sources, targets))

    def _scores(self, sources, targets) -> list[tuple[float, int]]:
        sources, targets = check_pairs(sources, targets)
        columns = itemgetter(*SCORE_COLUMNS)
        rows = self._in_batches("score", columns, text=sources, target=targets)
        return [(float(log_probability), int(length)) for log_probability, length in rows]


class ExportedCausalLM(ExportedSeq2Seq):
    """An exported `CausalLMTask`, as `open_exported` and `keras_attn.load` return it.

    Examples:
        >>> model = CausalTransformer(7, num_layers=1, hidden_dim=8, num_heads=2)
        >>> decoding = DecodingSettings(beams=1, max_source_length=8, max_length=4)
        >>> task = CausalLMTask(model, CharacterTokenizer("abc"), decoding)
        >>> folder = task.export("exported/demo", n_best=1)
        >>> exported = open_exported("exported/demo")
        >>> bool(np.isclose(exported.text_perplexity(["cab"]), task.text_perplexity(["cab"])))
        True
    """

    kind = "causal_lm"

    def text_perplexity(self, texts: Sequence[str]) -> float:
        """Computes the per-token perplexity of whole texts, including end tokens.

        Raises:
            UserError: A text exceeds the model's maximum length.
        """
        return perplexity_of(self.score_texts(texts))

    def score_texts(self, texts: Sequence[str]) -> list[tuple[float, int]]:
        """Scores whole texts (see `CausalLMTask.score_texts`).

        Raises:
            UserError: A text exceeds the model's maximum length.
        """
        texts = check_texts("texts", texts)
        try:
            return self._scores([""] * len(texts), texts)
        except UserError as error:
            hint = "Use the run or the task folder to measure longer texts, in pieces."
            raise UserError(f"{error} {hint}") from error
