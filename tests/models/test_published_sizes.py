"""Presets have as many parameters as the published checkpoints."""

import pytest

from keras_attn import models
from keras_attn.models.parameter_count import parameter_count

pytestmark = pytest.mark.tensorflow  # the numbers are those of any backend

# With the vocabularies of the checkpoints. BERT's are of Devlin et al. and Turc et al.
VOCABULARIES = {"Bert": 30_522, "GPT2": 50_257, "T5": 32_128}
PARAMETERS = {
    "Bert": {
        "bert_tiny": 4_385_920,
        "bert_mini": 11_170_560,
        "bert_small": 28_763_648,
        "bert_medium": 41_373_184,
        "bert_base": 109_482_240,
        "bert_large": 335_141_888,
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


@pytest.mark.parametrize(("family", "name"), NAMES)
def test_presets_have_the_published_number_of_parameters(family, name):
    count = parameter_count(lambda: getattr(models, family).from_preset(name, VOCABULARIES[family]))
    assert count == PARAMETERS[family][name]


@pytest.mark.parametrize("family", PARAMETERS)
def test_every_published_size_is_there(family):
    names = {name for name, preset in models.PRESETS.items() if preset.family == family}
    assert names - OWN == set(PARAMETERS[family])
