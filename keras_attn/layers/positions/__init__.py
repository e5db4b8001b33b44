"""Position encodings and biases by relative position."""
