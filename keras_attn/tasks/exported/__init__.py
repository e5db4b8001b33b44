"""Exported tasks, used like the tasks themselves."""
