"""Convolutional encoders, decoders and front ends."""
