"""Models of Hugging Face that generate texts."""
