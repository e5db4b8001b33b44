"""Devices and workers: strategies, workers between workers, supervision."""
