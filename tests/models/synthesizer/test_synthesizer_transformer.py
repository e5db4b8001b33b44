"""SynthesizerTransformer: whom a position attends to follows from no comparison."""

import numpy as np
import pytest

from keras_attn.models import SynthesizerTransformer
from keras_attn.validation import UserError
from tests.harness import numbers, numpy
from tests.layers.judges import spread_weights
from tests.models.families import SOURCE, TARGET
from tests.refusals import refused

SIZES = {"num_layers": 2, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7, "max_length": 11}
KINDS = ("dense", "factorized_dense", "random", "fixed_random", "factorized_random", "dot_product")


def built(*scores, **arguments):
    return spread_weights(SynthesizerTransformer(13, scores=scores, **(SIZES | arguments)))


def probabilities(model, x):
    attention = model.encoder_blocks[0].attention
    return numpy(attention(x, x, return_attention_scores=True)[1])


@pytest.mark.parametrize("kind", KINDS)
def test_what_scores_depend_on(kind):
    model = built(kind)
    x, y = numbers(1, 1, 5, 6), numbers(2, 1, 5, 6)
    y[:, 2] = x[:, 2]  # one position is the same
    before, after = probabilities(model, x), probabilities(model, y)
    same_for_all_texts = np.allclose(before, after, atol=1e-6)
    same_for_the_position = np.allclose(before[:, :, 2], after[:, :, 2], atol=1e-6)
    assert same_for_all_texts == ("random" in kind)
    assert same_for_the_position == (kind != "dot_product")


def test_only_fixed_scores_are_not_trained():
    counts = {}
    for kind in KINDS:
        model = SynthesizerTransformer(13, scores=kind, **SIZES)
        counts[kind] = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    per_layer = counts["random"] - counts["fixed_random"]
    # Two heads' scores of 11 by 11, in two layers on both sides.
    assert per_layer == 4 * 2 * 11 * 11
    # Dense scores are d² + d·N, with biases, for both heads.
    assert counts["dense"] - counts["fixed_random"] == 4 * (6 * 6 + 6 + 2 * (3 * 11 + 11))


def test_mixtures_have_members_of_all_kinds():
    model = built(*KINDS)
    found = numpy(model({"source_ids": SOURCE, "target_ids": TARGET}))
    assert np.isfinite(found).all()
    assert model.get_config()["scores"] == list(KINDS)


def test_presets_and_mistakes():
    model = SynthesizerTransformer.from_preset("synthesizer_small", 13, num_layers=1)
    assert model.max_length == 64
    refused("`scores` must be one of .* Did you mean 'random'?", built, "rndom")
    refused("needs `scores`", built)
    with pytest.raises(UserError, match=r"longer than|at most|max_length"):
        built("random")({"source_ids": np.ones((1, 12), "int32"), "target_ids": TARGET[:1]})
