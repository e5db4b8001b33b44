"""Encoder and decoder blocks, and their parts."""
