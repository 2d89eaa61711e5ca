"""Mechanisms and their parts: frozen data with names, in SI units."""

from .beams import Beam
from .construction import build_mechanism
from .contacts import Contact, Surface
from .curves import Curve, Law
from .drives import Actuator, Keyframe, Motor
from .mechanism import Mechanism
from .modal_bodies import ModalBody
from .parameters import Expression, Number, Parameter, parse
from .parts import GROUND, Body, Coupling, Elastic, ForceElement, Frame, Joint, Limits, Loop, Pair, Placement, Shape

__all__ = [
    "GROUND",
    "Actuator",
    "Beam",
    "Body",
    "Contact",
    "Coupling",
    "Curve",
    "Elastic",
    "Expression",
    "ForceElement",
    "Frame",
    "Joint",
    "Keyframe",
    "Law",
    "Limits",
    "Loop",
    "Mechanism",
    "ModalBody",
    "Motor",
    "Number",
    "Pair",
    "Parameter",
    "Placement",
    "Shape",
    "Surface",
    "build_mechanism",
    "parse",
]
