"""Compiled functions on NVIDIA GPUs: arrays of other libraries in the device's memory, launched on their streams."""
