import pytest

from tests.refusals import refused

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("preset", ["lm_tiny", "transformer_tiny"])
def test_generation_is_timed(monkeypatch, preset):
    from keras_attn.benchmarks import generate

    seen = []
    monkeypatch.setattr(
        generate, "median_seconds", lambda call, runs: seen.append(call().shape[-1]) or 0.5
    )
    (figure,) = generate.benchmark_generation(preset, [2], 3, 4, vocabulary=9, runs=1)
    assert seen == [4]
    assert (figure["seconds"], figure["tokens_per_second"]) == (0.5, 16)


@pytest.mark.parametrize(
    ("preset", "given", "message"),
    [
        ("encoder_tiny", {}, "does not generate text"),
        ("lm_tiny", {"batches": [0]}, "Received: batches=0"),
        ("lm_tiny", {"vocabulary": 4}, "Received: vocabulary=4"),
        ("lm_tini", {}, "Did you mean 'lm_tiny'"),
    ],
)
def test_mistakes_are_told(preset, given, message):
    from keras_attn.benchmarks.generate import benchmark_generation

    refused(message, list, benchmark_generation(preset, **given))
