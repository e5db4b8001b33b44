"""Search for settings with KerasTuner (the extra `tune`)."""

from typing import Any

__all__ = ["PresetHyperModel"]


def __getattr__(name: str) -> Any:
    # KerasTuner and TensorFlow are imported when first used.
    if name in __all__:
        from keras_attn.tuning.hypermodel import PresetHyperModel

        return PresetHyperModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
