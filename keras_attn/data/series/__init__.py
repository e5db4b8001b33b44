"""Series of numbers: read from tables, and put on equal steps of time."""
