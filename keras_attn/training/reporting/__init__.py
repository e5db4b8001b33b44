"""Files and lines in which a run reports its progress and results."""
