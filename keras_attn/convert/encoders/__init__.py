"""Text encoders of Hugging Face: families as data, heads, tasks and sentence modules."""
