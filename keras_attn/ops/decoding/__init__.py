"""What steps of decoding keep: caches, their room, and the states of mechanisms."""
