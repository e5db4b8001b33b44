"""Configurations and tensors of a checkpoint folder, read and written."""
