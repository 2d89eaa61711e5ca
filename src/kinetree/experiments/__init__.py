"""Experiments: a mechanism, its initial state, forces, control and outputs in one TOML file."""

from .experiment import Experiment, Outputs
from .reading import read_experiment

__all__ = ["Experiment", "Outputs", "read_experiment"]
