"""Devices and workers: strategies, communication, supervision."""
