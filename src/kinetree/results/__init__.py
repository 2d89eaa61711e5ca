"""Results of simulations: named columns with units, and files of them without pickle."""

from .columns import Column
from .trajectory import Trajectory, read_trajectory

__all__ = ["Column", "Trajectory", "read_trajectory"]
