"""Mechanisms by tasks for long sequences: what is trained, and what came out."""

from keras_attn.benchmarks.arena.run import run_arena
from keras_attn.benchmarks.arena.tasks import ARENA_TASKS, CAUSAL_MECHANISMS, MECHANISMS

__all__ = ["ARENA_TASKS", "CAUSAL_MECHANISMS", "MECHANISMS", "run_arena"]
