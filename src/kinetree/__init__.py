"""Kinetree: the dynamics of rigid multibody systems by the DeNOC method.

>>> import kinetree as kt
>>> arm = kt.load("stanford")
>>> tau = arm.inverse_dynamics(q, qd, qdd)
"""

from .errors import InputError, KinetreeError, ModelError, UnknownNameError
from .loading import from_dh, load
from .model import (
    GROUND,
    Body,
    Coupling,
    ForceElement,
    Frame,
    Joint,
    Limits,
    Loop,
    Mechanism,
    Parameter,
    Placement,
    Shape,
    assemble,
)
from .system import System

__version__ = "0.1.0"

__all__ = [
    "GROUND",
    "Body",
    "Coupling",
    "ForceElement",
    "Frame",
    "InputError",
    "Joint",
    "KinetreeError",
    "Limits",
    "Loop",
    "Mechanism",
    "ModelError",
    "Parameter",
    "Placement",
    "Shape",
    "System",
    "UnknownNameError",
    "__version__",
    "assemble",
    "from_dh",
    "load",
]
