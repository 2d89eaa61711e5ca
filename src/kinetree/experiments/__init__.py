"""Experiments: a mechanism, its start, what acts on it and what to keep, in one TOML file."""

from .experiment import Experiment, Outputs
from .reading import read_experiment

__all__ = ["Experiment", "Outputs", "read_experiment"]
