"""Mechanisms and their parts: frozen data with names, in SI units."""

from .construction import assemble
from .contacts import Contact, Surface
from .curves import Curve, Law
from .formulas import parse
from .mechanism import Mechanism
from .parameters import Expression, Number, Parameter
from .parts import GROUND, Body, Coupling, ForceElement, Frame, Joint, Limits, Loop, Pair, Placement, Shape

__all__ = [
    "GROUND",
    "Body",
    "Contact",
    "Coupling",
    "Curve",
    "Expression",
    "ForceElement",
    "Frame",
    "Joint",
    "Law",
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
