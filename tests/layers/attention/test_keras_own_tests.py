"""Keras' own tests of its attention layers pass with ours in place, but for those of this table."""

import pytest

from tests.layers.keras_own_tests import FILES, failures

pytestmark = pytest.mark.tensorflow

LAYOUT = "query, key and value of one input share a kernel, (features, all heads)"
PRIVATE = "it calls or overrides what is private to Keras' layer"
WORDS = "the same mistake is a ValueError in other words"
CAUSAL = "a causal mask is aligned to the last key, so that queries may continue a cache"
WIDER = "query and value may differ in their features"
FAILING = {
    "multi_head_attention_test": {
        "test_basics": LAYOUT,
        "test_causal_only_skipped_for_subclass": PRIVATE,
        "test_compute_attention_combines_causal_and_explicit_mask_fused_fallback": PRIVATE,
        "test_compute_attention_combines_causal_and_explicit_mask_manual_path": PRIVATE,
        "test_correctness_disable_flash_attention": LAYOUT,
        "test_correctness_enable_flash_attention": LAYOUT,
        "test_dtype_policy_map": LAYOUT,
        "test_high_dim_attention_4d_inputs_1freebatch_mask2": LAYOUT,
        "test_high_dim_attention_4d_inputs_1freebatch_mask3": LAYOUT,
        "test_high_dim_attention_4d_inputs_1freebatch_mask4": LAYOUT,
        "test_high_dim_attention_4d_inputs_2d_attention": LAYOUT,
        "test_high_dim_attention_5d_inputs_2d_attention": LAYOUT,
        "test_high_dim_attention_5d_inputs_2d_attention_fullmask": LAYOUT,
        "test_initializer": LAYOUT,
        "test_invalid_scalar_args_rejected": WORDS,
        "test_lora": LAYOUT,
        "test_masking_causal": CAUSAL,
        "test_mha_constraints": LAYOUT,
        "test_multi_head_attention_output_shape_error": WORDS,
        "test_quantize_int8": LAYOUT,
        "test_shape_mismatch_error_query_value_dim_mismatch": WIDER,
        "test_sliding_window_serialization": PRIVATE,
    },
    "grouped_query_attention_test": {
        "test_basics": LAYOUT,
        "test_causal_only_skipped_for_subclass": PRIVATE,
        "test_compute_attention_combines_causal_and_explicit_mask_fused_fallback": PRIVATE,
        "test_compute_attention_combines_causal_and_explicit_mask_manual_path": PRIVATE,
        "test_correctness_disable_flash_attention": LAYOUT,
        "test_correctness_enable_flash_attention": LAYOUT,
        "test_initializer": LAYOUT,
        "test_masking_causal": CAUSAL,
        "test_shape_mismatch_error_query_value_dim_mismatch": WIDER,
    },
}


@pytest.mark.parametrize("file", FILES)
def test_those_that_fail_are_known(file):
    results = failures(file)
    assert len(results) >= 30
    assert {name for name, error in results.items() if error} == set(FAILING[file])
