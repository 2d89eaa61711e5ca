"""The target PTX: code for NVIDIA GPUs, and the driver that runs it."""
