"""A tiny checkpoint for each converter, by its model type."""

from tests.convert.made import GOLDEN

CHECKPOINTS = {name: GOLDEN / name for name in ("bert", "gpt2", "longformer", "marian", "t5")}
