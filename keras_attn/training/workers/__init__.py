"""Devices and workers: strategies, agreement between workers, supervision."""
