"""The public names of Kinetree and their places, read by type checkers and, when a name is used, by `__init__.py`."""

from ._support.version import VERSION as __version__
from .analysis.equilibrium import equilibrium as equilibrium
from .apps.lessons import lesson as lesson
from .apps.walking.return_maps import PeriodicMotion as PeriodicMotion
from .apps.walking.return_maps import ReturnMap as ReturnMap
from .apps.walking.return_maps import periodic as periodic
from .errors import AssemblyError as AssemblyError
from .errors import InputError as InputError
from .errors import KinetreeError as KinetreeError
from .errors import ModelError as ModelError
from .errors import UnknownNameError as UnknownNameError
from .errors import UnreachableError as UnreachableError
from .exporting.writing import export as export
from .loading import chain as chain
from .loading import contacts_of as contacts_of
from .loading import from_dh as from_dh
from .loading import from_pairs as from_pairs
from .loading import load as load
from .loading import n_four_bars as n_four_bars
from .loading import net as net
from .loading import rope as rope
from .loading import rope_tree as rope_tree
from .loading import save as save
from .model import GROUND as GROUND
from .model import Actuator as Actuator
from .model import Body as Body
from .model import Contact as Contact
from .model import Coupling as Coupling
from .model import Curve as Curve
from .model import ForceElement as ForceElement
from .model import Frame as Frame
from .model import Joint as Joint
from .model import Keyframe as Keyframe
from .model import Law as Law
from .model import Limits as Limits
from .model import Loop as Loop
from .model import Mechanism as Mechanism
from .model import Pair as Pair
from .model import Parameter as Parameter
from .model import Placement as Placement
from .model import Shape as Shape
from .model import Surface as Surface
from .model import build_mechanism as build_mechanism
from .model import parse as parse
from .reports.report import LoadReport as LoadReport
from .reports.report import load_report as load_report
from .results import Trajectory as Trajectory
from .results import read_trajectory as read_trajectory
from .simulation.acting import smooth as smooth
from .simulation.acting.actuators import ActuatorControl as ActuatorControl
from .simulation.acting.controllers import PD as PD
from .simulation.acting.controllers import ComputedTorque as ComputedTorque
from .simulation.acting.controllers import FeedForward as FeedForward
from .simulation.acting.controllers import PDGravity as PDGravity
from .simulation.acting.controllers import Saturated as Saturated
from .simulation.acting.controllers import Sum as Sum
from .simulation.acting.controllers import TorqueFunction as TorqueFunction
from .simulation.acting.driven import Driven as Driven
from .simulation.acting.from_casadi import FromCasadi as FromCasadi
from .simulation.acting.joint_forces import JointDamper as JointDamper
from .simulation.acting.joint_forces import JointFriction as JointFriction
from .simulation.acting.joint_forces import JointSpring as JointSpring
from .simulation.acting.joint_forces import JointStops as JointStops
from .simulation.acting.lqr import LQR as LQR
from .simulation.acting.point_forces import ExternalWrench as ExternalWrench
from .simulation.acting.point_forces import GroundForce as GroundForce
from .simulation.acting.point_forces import LinearActuator as LinearActuator
from .simulation.acting.point_forces import SpringDamper as SpringDamper
from .simulation.acting.point_forces import forces_of as forces_of
from .simulation.acting.references import Constant as Constant
from .simulation.acting.references import Cosine as Cosine
from .simulation.acting.references import Cycloid as Cycloid
from .simulation.acting.references import Hold as Hold
from .simulation.acting.references import Polynomial as Polynomial
from .simulation.acting.references import Table as Table
from .simulation.acting.references import TimedPath as TimedPath
from .simulation.acting.references import Trapezoid as Trapezoid
from .simulation.acting.references import Waypoints as Waypoints
from .simulation.acting.references import sampled as sampled
from .simulation.acting.sampled import PythonControl as PythonControl
from .simulation.acting.sampled import Sampled as Sampled
from .simulation.acting.tracking import TrackingLQR as TrackingLQR
from .simulation.changes import with_driven_axle as with_driven_axle
from .simulation.changes import with_free as with_free
from .simulation.changes import with_gear as with_gear
from .simulation.changes import with_mecanum_wheels as with_mecanum_wheels
from .simulation.changes import with_parameters as with_parameters
from .simulation.changes import with_payload as with_payload
from .simulation.derivatives.functions import RunFunction as RunFunction
from .simulation.derivatives.functions import RunGradient as RunGradient
from .simulation.derivatives.functions import run_function as run_function
from .simulation.derivatives.functions import simulation_gradient as simulation_gradient
from .simulation.derivatives.of_runs import RunDerivatives as RunDerivatives
from .simulation.derivatives.of_runs import simulation_derivatives as simulation_derivatives
from .simulation.events import Event as Event
from .simulation.events import event_hits as event_hits
from .simulation.ground_monitor import ground_balance as ground_balance
from .simulation.monitors import energy_balance as energy_balance
from .simulation.monitors import limit_violations as limit_violations
from .simulation.monitors import momentum_balance as momentum_balance
from .simulation.outcomes import Outcome as Outcome
from .simulation.schedules import Schedule as Schedule
from .simulation.simulate import simulate as simulate
from .simulation.stabilization import Baumgarte as Baumgarte
from .simulation.stabilization import Minimal as Minimal
from .simulation.stabilization import Projection as Projection
from .studies.files import read_study as read_study
from .studies.measures import Measure as Measure
from .studies.measures import at_end as at_end
from .studies.measures import integral as integral
from .studies.measures import maximum as maximum
from .studies.measures import mean as mean
from .studies.measures import minimum as minimum
from .studies.measures import peak as peak
from .studies.measures import rms as rms
from .studies.measures import span as span
from .studies.optimizing import Optimum as Optimum
from .studies.optimizing import optimize as optimize
from .studies.samplings import grid as grid
from .studies.samplings import latin as latin
from .studies.samplings import normal as normal
from .studies.samplings import sobol as sobol
from .studies.samplings import table as table
from .studies.samplings import uniform as uniform
from .studies.schemes import sensitivity as sensitivity
from .studies.study import Study as Study
from .studies.study import study as study
from .system import System as System

__all__ = [
    "GROUND",
    "LQR",
    "PD",
    "Actuator",
    "ActuatorControl",
    "AssemblyError",
    "Baumgarte",
    "Body",
    "ComputedTorque",
    "Constant",
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
    "GroundForce",
    "Hold",
    "InputError",
    "Joint",
    "JointDamper",
    "JointFriction",
    "JointSpring",
    "JointStops",
    "Keyframe",
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
    "Outcome",
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
    "Schedule",
    "Shape",
    "SpringDamper",
    "Study",
    "Sum",
    "Surface",
    "System",
    "Table",
    "TimedPath",
    "TorqueFunction",
    "TrackingLQR",
    "Trajectory",
    "Trapezoid",
    "UnknownNameError",
    "UnreachableError",
    "Waypoints",
    "__version__",
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
    "parse",
    "peak",
    "periodic",
    "read_study",
    "read_trajectory",
    "rms",
    "rope",
    "rope_tree",
    "run_function",
    "sampled",
    "save",
    "sensitivity",
    "simulate",
    "simulation_derivatives",
    "simulation_gradient",
    "smooth",
    "sobol",
    "span",
    "study",
    "table",
    "uniform",
    "with_driven_axle",
    "with_free",
    "with_gear",
    "with_mecanum_wheels",
    "with_parameters",
    "with_payload",
]
