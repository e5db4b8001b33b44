"""The training loop: updates, schedules, losses, validation and checkpoints."""
