"""Results of simulations: named columns with units, and files of them without pickle."""

from .columns import Column
from .reading import read_trajectory
from .trajectory import Trajectory

__all__ = ["Column", "Trajectory", "read_trajectory"]
