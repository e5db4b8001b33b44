"""Names of the version before load and warn."""

import keras
import numpy as np
import pytest

from keras_attn import layers, models, tasks
from keras_attn.renamed import renamed_arguments
from tests.models.every_family import EVERY

OLD = {
    (tasks, "LabellingTask"): tasks.BaseClassificationTask,
    (models, "Etc"): models.ETC,
    (models, "Gnmt"): models.GNMT,
    (models, "Gpt2"): models.GPT2,
    (layers, "SegmentedAttention"): layers.SegmentRecurrence,
}


@pytest.mark.parametrize(("module", "name"), OLD)
def test_an_old_name_stands_for_the_new_one_and_warns(module, name):
    with pytest.warns(DeprecationWarning, match=f"{name} is now .*{OLD[module, name].__name__}"):
        assert getattr(module, name) is OLD[module, name]


def test_an_old_argument_works_and_warns():
    @renamed_arguments(free_end="forced_end_is_free")
    def function(one, forced_end_is_free=False):
        return one, forced_end_is_free

    assert function(1, forced_end_is_free=True) == (1, True)
    with pytest.warns(DeprecationWarning, match="`free_end` is now `forced_end_is_free`"):
        assert function(1, free_end=True) == (1, True)


@pytest.mark.tensorflow
def test_decoding_settings_of_the_version_before():
    from keras_attn.tasks import DecodingSettings

    expected = DecodingSettings(beams=2, forced_end_is_free=True)
    assert DecodingSettings.from_dict({"beams": 2, "free_end": True}) == expected
    with pytest.warns(DeprecationWarning, match="`free_end` is now"):
        assert DecodingSettings(beams=2).replace(free_end=True) == expected


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match="no attribute 'Gpt3'"):
        _ = models.Gpt3


@pytest.mark.parametrize(
    ("name", "new", "old", "module"),
    [
        ("Etc", "ETC", "Etc", "keras_attn.models.etc"),
        ("GPT-2", "GPT2", "Gpt2", "keras_attn.models.gpt2"),
    ],
)
def test_files_of_the_version_before_load(name, new, old, module):
    case = next(value for key, value in EVERY.items() if key in (name, new, old))
    make, inputs = case
    model = make()
    described = keras.saving.serialize_keras_object(model)
    assert described["class_name"] == new
    described |= {
        "class_name": old,
        "registered_name": f"keras_attn>{old}",
        "module": module,
    }
    loaded = keras.saving.deserialize_keras_object(described)
    loaded.set_weights(model.get_weights())
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(loaded(inputs)), keras.ops.convert_to_numpy(model(inputs))
    )
