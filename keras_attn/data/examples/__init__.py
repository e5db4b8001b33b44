"""Examples of each kind of task, read once and assembled in batches."""
