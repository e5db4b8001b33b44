"""Presets have as many parameters as the published checkpoints."""

import pytest

from keras_attn import models
from keras_attn.models.parameter_count import parameter_count
from tests.backends import thinned

pytestmark = pytest.mark.tensorflow  # the numbers are those of any backend

# With the checkpoints' vocabularies. Counts of BERT are those of Devlin et al. and Turc et al.,
# others those of transformers, without the two rows of positions for padding.
VOCABULARIES = {
    "Bert": 30_522,
    "GPT2": 50_257,
    "T5": 32_128,
    "roberta": 50_265,
    "xlm": 250_002,
    "albert": 30_000,
    "mpnet": 30_527,
    "deberta": 128_100,
    "modernbert": 50_368,
}
PARAMETERS = {
    "Bert": {
        "bert_tiny": 4_385_920,
        "bert_mini": 11_170_560,
        "bert_small": 28_763_648,
        "bert_medium": 41_373_184,
        "bert_base": 109_482_240,
        "bert_large": 335_141_888,
        "roberta_base": 124_644_096,
        "roberta_large": 355_357_696,
        "xlm_roberta_base": 278_042_112,
        "xlm_roberta_large": 559_888_384,
        "distilbert_base": 66_362_880,
        "electra_small": 13_483_008,
        "electra_base": 108_891_648,
        "electra_large": 334_092_288,
        "albert_base": 11_683_584,
        "albert_large": 17_683_968,
        "albert_xlarge": 58_724_864,
        "albert_xxlarge": 222_595_584,
        "mpnet_base": 109_484_928,
        "modernbert_base": 149_014_272,
        "modernbert_large": 394_781_696,
        "deberta_v3_xsmall": 70_682_112,
        "deberta_v3_small": 141_304_320,
        "deberta_v3_base": 183_831_552,
        "deberta_v3_large": 434_012_160,
    },
    "GPT2": {
        "gpt2_small": 124_439_808,
        "gpt2_medium": 354_823_168,
        "gpt2_large": 774_030_080,
        "gpt2_xl": 1_557_611_200,
    },
    "T5": {
        "t5_small": 60_506_624,
        "t5_base": 222_903_552,
        "t5_large": 737_668_096,
        "t5_3b": 2_851_598_336,
        "t5_11b": 11_307_321_344,
        "t5_v1_1_small": 76_961_152,
        "t5_v1_1_base": 247_577_856,
        "t5_v1_1_large": 783_150_080,
        "t5_v1_1_xl": 2_849_757_184,
        "t5_v1_1_xxl": 11_135_332_352,
    },
}
OWN = {"gpt2_tiny", "t5_tiny"}
NAMES = [(family, name) for family, sizes in PARAMETERS.items() for name in sizes]


@pytest.mark.parametrize(("family", "name"), thinned(NAMES, on_tensorflow=3))
def test_presets_have_the_published_number_of_parameters(family, name):
    vocabulary = VOCABULARIES.get(name.partition("_")[0], VOCABULARIES[family])
    count = parameter_count(lambda: getattr(models, family).from_preset(name, vocabulary))
    assert count == PARAMETERS[family][name]


@pytest.mark.parametrize("family", PARAMETERS)
def test_every_published_size_is_there(family):
    names = {name for name, preset in models.PRESETS.items() if preset.family == family}
    assert names - OWN == set(PARAMETERS[family])
