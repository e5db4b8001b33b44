"""Tokenizer files of Hugging Face, read and written."""
