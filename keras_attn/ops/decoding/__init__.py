"""State of decoding step by step: caches, their room, and the states of mechanisms."""
