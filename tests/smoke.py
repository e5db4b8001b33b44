"""Tests of `pytest -m smoke`: one of each main thing, in less than two minutes."""

SMOKE = {
    "tests/cli/test_main.py": ["test_help_is_quick_and_teaches"],
    "tests/convert/generators/test_gpt2.py": ["test_logits_are_those_of_transformers"],
    "tests/data/test_batching.py": ["test_batches_are_full"],
    "tests/evaluation/test_metrics.py": ["test_every_metric"],
    "tests/export/test_verify.py": ["test_an_export_is_verified_and_left_as_it_was"],
    "tests/generation/test_beam_search.py": [
        "test_wide_beam_finds_the_best_of_a_recurrent_network",
        "test_scores_are_those_of_the_model_stepped_over_the_tokens",
    ],
    "tests/layers/attention/test_references.py": ["test_linear_attention"],
    "tests/layers/test_torch_golden.py": None,
    "tests/models/test_torch_golden.py": None,
    "tests/ops/test_attention.py": ["test_a_number_worked_out_by_hand"],
    "tests/serving/test_json_codec.py": None,
    "tests/tasks/test_seq2seq.py": ["test_scores_are_the_models_probabilities"],
    "tests/test_api.py": ["test_the_public_api_is_that_of_the_snapshot"],
    "tests/test_package.py": ["test_importing_the_package_imports_nothing_heavy"],
    "tests/tokenizers/test_characters.py": None,
    "tests/training/test_run.py": ["test_a_run_leaves_everything_it_should"],
    "tests/tuning/test_search_space.py": ["test_declares_and_nests"],
    "tests/visualization/test_attention_maps.py": ["test_reach_of_windows_globals_and_order"],
}
"""Names of tests by file; None for all of a file that are not slow."""
