"""Mechanisms and their parts: frozen data with names, in SI units."""

from .construction import assemble
from .contacts import Contact, Surface
from .formulas import parse
from .mechanism import Mechanism
from .parameters import Expression, Number, Parameter
from .parts import GROUND, Body, Coupling, ForceElement, Frame, Joint, Limits, Loop, Pair, Placement, Shape

__all__ = [
    "GROUND",
    "Body",
    "Contact",
    "Coupling",
    "Expression",
    "ForceElement",
    "Frame",
    "Joint",
    "Limits",
    "Loop",
    "Mechanism",
    "Number",
    "Pair",
    "Parameter",
    "Placement",
    "Shape",
    "Surface",
    "assemble",
    "parse",
]
