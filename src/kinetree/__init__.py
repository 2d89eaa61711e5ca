"""Kinetree: the dynamics of rigid multibody systems by the DeNOC method.

>>> import kinetree as kt
>>> arm = kt.load("stanford")
>>> tau = arm.inverse_dynamics(q, qd, qdd)
>>> run = kt.simulate(arm, q0, duration=10.0)
"""

from . import interruption as _interruption  # noqa: F401 - answers Ctrl-C during the imports below  # isort: skip
from . import cycles as _cycles  # noqa: F401 - provides System.cycle
from .analysis.linear.equilibrium import equilibrium
from .errors import AssemblyError, InputError, KinetreeError, ModelError, UnknownNameError, UnreachableError
from .exporting.export import export
from .loading import chain, contacts_of, from_dh, from_pairs, load, n_four_bars, net, rope, rope_tree, save
from .model import (
    GROUND,
    Body,
    Contact,
    Coupling,
    Curve,
    ForceElement,
    Frame,
    Joint,
    Law,
    Limits,
    Loop,
    Mechanism,
    Pair,
    Parameter,
    Placement,
    Shape,
    Surface,
    assemble,
)
from .reporting.report import LoadReport, load_report
from .results import Trajectory, read_trajectory
from .run_derivatives import RunDerivatives, simulation_derivatives
from .run_functions import RunFunction, run_function
from .run_gradients import RunGradient, simulation_gradient
from .simulation.changes import with_gear, with_parameters, with_payload
from .simulation.control.controllers import PD, ComputedTorque, FeedForward, Function, PDGravity, Saturated
from .simulation.control.driven import Driven
from .simulation.control.from_casadi import FromCasadi
from .simulation.control.lqr import LQR
from .simulation.control.sampled import PythonControl, Sampled
from .simulation.control.tracking import TrackingLQR
from .simulation.events import Event, event_hits
from .simulation.forces.ground_forces import GroundForce
from .simulation.forces.joint_forces import JointDamper, JointFriction, JointSpring, JointStops
from .simulation.forces.point_forces import ExternalWrench, LinearActuator, SpringDamper, forces_of
from .simulation.ground_monitor import ground_balance
from .simulation.monitors import energy_balance, limit_violations, momentum_balance
from .simulation.references import Cosine, Cycloid, Hold, Polynomial, Table, Trapezoid
from .simulation.stabilization import Baumgarte, Minimal, Projection
from .simulation.wheels import with_driven_axle, with_mecanum_wheels
from .simulator import simulate
from .studies.files import read_study
from .studies.measures import Measure, at_end, integral, maximum, mean, minimum, peak, rms, span
from .studies.optimizing import Optimum, optimize
from .studies.samplings import grid, latin, normal, sobol, table, uniform
from .studies.schemes import sensitivity
from .studies.study import Study, study
from .system import System
from .version import VERSION as __version__
from .view.provided import lesson
from .view.provided import provide_pictures as _provide_pictures
from .walking.periodic import PeriodicMotion, periodic
from .walking.return_maps import ReturnMap

TorqueFunction = Function
"""A controller that is a function: the clearer name of `Function`, which `arm.function` has nothing to do with."""
build_mechanism = assemble
"""Parts in, a Mechanism out: the clearer name of `assemble`, which `arm.assemble` has nothing to do with."""

_provide_pictures()

__all__ = [
    "GROUND",
    "LQR",
    "PD",
    "AssemblyError",
    "Baumgarte",
    "Body",
    "ComputedTorque",
    "Contact",
    "Cosine",
    "Coupling",
    "Curve",
    "Cycloid",
    "Driven",
    "Event",
    "ExternalWrench",
    "FeedForward",
    "ForceElement",
    "Frame",
    "FromCasadi",
    "Function",
    "GroundForce",
    "Hold",
    "InputError",
    "Joint",
    "JointDamper",
    "JointFriction",
    "JointSpring",
    "JointStops",
    "KinetreeError",
    "Law",
    "Limits",
    "LinearActuator",
    "LoadReport",
    "Loop",
    "Measure",
    "Mechanism",
    "Minimal",
    "ModelError",
    "Optimum",
    "PDGravity",
    "Pair",
    "Parameter",
    "PeriodicMotion",
    "Placement",
    "Polynomial",
    "Projection",
    "PythonControl",
    "ReturnMap",
    "RunDerivatives",
    "RunFunction",
    "RunGradient",
    "Sampled",
    "Saturated",
    "Shape",
    "SpringDamper",
    "Study",
    "Surface",
    "System",
    "Table",
    "TorqueFunction",
    "TrackingLQR",
    "Trajectory",
    "Trapezoid",
    "UnknownNameError",
    "UnreachableError",
    "__version__",
    "assemble",
    "at_end",
    "build_mechanism",
    "chain",
    "contacts_of",
    "energy_balance",
    "equilibrium",
    "event_hits",
    "export",
    "forces_of",
    "from_dh",
    "from_pairs",
    "grid",
    "ground_balance",
    "integral",
    "latin",
    "lesson",
    "limit_violations",
    "load",
    "load_report",
    "maximum",
    "mean",
    "minimum",
    "momentum_balance",
    "n_four_bars",
    "net",
    "normal",
    "optimize",
    "peak",
    "periodic",
    "read_study",
    "read_trajectory",
    "rms",
    "rope",
    "rope_tree",
    "run_function",
    "save",
    "sensitivity",
    "simulate",
    "simulation_derivatives",
    "simulation_gradient",
    "sobol",
    "span",
    "study",
    "table",
    "uniform",
    "with_driven_axle",
    "with_gear",
    "with_mecanum_wheels",
    "with_parameters",
    "with_payload",
]
