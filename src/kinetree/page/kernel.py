"""The kernel of a page: functions of the mechanism as one WebAssembly module, in the order of their use to a reader."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..algebra.scalars import Scalar
from ..analysis.kinematics import all_solutions, inverse_kinematics, pose_kernel
from ..analysis.kinematics.pose_kernel import PoseEquations
from ..analysis.loops import assembly, findings, redundancy, tolerances
from ..analysis.loops.driven_programs import idle_equations, loads_program
from ..compiler.ir.program import Program
from ..compiler.lanes.form import Kernel
from ..compiler.lower.build import Request, build, is_long
from ..dynamics import ALGORITHMS
from ..exporting.acting import LiveInputs, coordinates, live_step
from ..formats.toml_writer import write_toml
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parameters import Expression, Parameter, names_in
from ..model.parts import GROUND, Placement
from ..model.topology import path
from ..runtime import cache
from ..runtime.singularity import weightless_joints
from ..simulation.acting.point_forces import forces_of
from ..simulation.acting.rates import ForcedMechanism, measure_program
from ..system import System
from ..targets.wasm import wasm_module
from .file import DENSITY, pack, unpack
from .ground import Ground, contact_places, contact_step, page_ground
from .numerics import loop_closing_kernel, singular_values_kernel
from .table import placements_program

# --- A mechanism whose numbers are inputs of its functions, so that the reader of a page can change them ---
#
# Every number of the page's table becomes a free parameter: masses, centers of mass, inertias and gravity, then
# lengths, then rotations. The more of them are inputs, the larger the functions are: a page has as many kinds of them
# as fit.

INERTIA, LENGTHS, ROTATIONS = "inertia", "lengths", "rotations"
TIERS = ((INERTIA, LENGTHS, ROTATIONS), (INERTIA, LENGTHS), (INERTIA,))
"""The kinds of numbers that are inputs, from all of them to the fewest."""


@dataclass(frozen=True)
class Live:
    """A mechanism with free parameters in place of its numbers.

    `slots` are the places of these parameters in the page's model, in their order, after the model's own free ones:
    [list, index, field, count], such as ["bodies", 2, "com", 3].
    """

    mechanism: Mechanism
    slots: list[list[Any]]
    kinds: tuple[str, ...]
    prefix: str

    def toml(self) -> str:
        """Return the native TOML text, in which a quoted name such as "live_12" stands for a number."""
        lines = write_toml(self.mechanism).splitlines()
        if not any(not p.name.startswith(self.prefix) for p in self.mechanism.parameters):
            lines.remove("[parameters]")
        return "\n".join(line for line in lines if not line.startswith(self.prefix)) + "\n"


class _Slots:
    """Free parameters as they are made."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self.made, self.places = prefix, [], []

    def of(self, numbers: Sequence[Scalar], *place: object) -> tuple[Scalar, ...]:
        """Return an expression per number."""
        self.places.append([*place, len(numbers)])
        return tuple(self._one(x) for x in numbers)

    def _one(self, x: Scalar) -> Expression:
        name = f"{self.prefix}{len(self.made)}"
        self.made.append(Parameter(name, float(x), free=True))
        return Expression("name", (name,))

    def placement(self, given: Placement, kinds: Sequence[str], *place: object) -> Placement:
        """Return a placement with lengths and rotations as inputs."""
        if LENGTHS in kinds:
            given = replace(given, translation=self.of(given.translation, *place, "translation"))
        if ROTATIONS in kinds:
            nine = self.of([x for row in given.rotation for x in row], *place, "rotation")
            given = replace(given, rotation=(nine[:3], nine[3:6], nine[6:]))
        return given


def live_mechanism(mechanism: Mechanism, kinds: Sequence[str]) -> Live:
    """Return the mechanism with its numbers as inputs, except those that depend on its own free parameters."""
    m, free = mechanism, {p.name for p in mechanism.free_parameters}
    values = {p.name: p.value for p in m.parameters if not p.free}
    slots = _Slots(_prefix(m))

    def bound(x: object) -> bool:
        return bool(names_in(x) & free)

    bodies = []
    for i, body in enumerate(m.bodies):
        if bound(body) or INERTIA not in kinds:
            bodies.append(body)
            continue
        plain = resolve_parts(body, values)
        numbers = {
            "mass": slots.of([plain.mass], "bodies", i, "mass")[0],
            "com": slots.of(plain.com, "bodies", i, "com"),
            "inertia": slots.of(plain.inertia, "bodies", i, "inertia"),
        }
        bodies.append(replace(body, **numbers))
    joints = [
        j
        if bound(j.placement)
        else replace(j, placement=slots.placement(resolve_parts(j.placement, values), kinds, "joints", i))
        for i, j in enumerate(m.joints)
    ]
    frames = [
        f if bound(f) else replace(f, placement=slots.placement(resolve_parts(f.placement, values), kinds, "frames", i))
        for i, f in enumerate(m.frames)
    ]
    loops = m.loops
    if LENGTHS in kinds:
        loops = tuple(x if bound(x) else _loop(resolve_parts(x, values), slots, i) for i, x in enumerate(m.loops))
    gravity = m.gravity if bound(m.gravity) else slots.of(resolve_parts(m.gravity, values), "gravity", 0, "gravity")
    made = replace(
        m,
        bodies=tuple(bodies),
        joints=tuple(joints),
        frames=tuple(frames),
        loops=loops,
        gravity=gravity,
        parameters=(*m.parameters, *slots.made),
    )
    return Live(made, slots.places, tuple(kinds), slots.prefix)


def _loop(loop: Any, slots: _Slots, i: int) -> Any:
    """Return a loop with the positions of its ends, and the length of a rod, as inputs."""
    a, b = (
        replace(p, translation=slots.of(p.translation, "loops", i, key))
        for p, key in ((loop.placement_a, "translation_a"), (loop.placement_b, "translation_b"))
    )
    if loop.length:
        loop = replace(loop, length=slots.of([loop.length], "loops", i, "length")[0])
    return replace(loop, placement_a=a, placement_b=b)


def _prefix(mechanism: Mechanism) -> str:
    """Return the start of the names of inputs, which no other parameter has."""
    return next(x for x in _prefixes() if not any(p.name.startswith(x) for p in mechanism.parameters))


def _prefixes() -> Iterator[str]:
    name = "live_"
    while True:
        yield name
        name += "_"


THRESHOLDS = {
    "closed": tolerances.CLOSED,
    "rank": tolerances.RANK,
    "idle": tolerances.IDLE,
    "share": tolerances.SHARE,
    "still": tolerances.STILL,
    "step": redundancy.LENGTH,
    "near": tolerances.NEARLY_SINGULAR,
    "weakDrive": findings.WEAK_DRIVE,
    "large": findings.LARGE,
    "samePose": assembly.SAME,
    "pose": inverse_kinematics.TOLERANCE,
    "poseSteps": inverse_kinematics.ITERATIONS,
    "poseDamping": pose_kernel.FLOOR,
    "poseFine": pose_kernel.FINE,
    "sameSolution": all_solutions.SAME,
}
"""What counts as closed, zero, near or equal: the page applies the library's numbers, which say what they mean."""

Progress = Callable[[float], None]
"""A function that is called with the part of the work that is done; what it raises ends the work."""


@dataclass(frozen=True)
class PageFunction:
    """A function of the kernel: its name, options of `System.function`, and whether only closed mechanisms have it."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    closed: bool = False


FUNCTIONS = (
    PageFunction("poses"),
    PageFunction("integrate"),
    PageFunction("difference"),
    PageFunction("singular_values"),
    PageFunction("close_loops", closed=True),
    PageFunction("closure_residual", closed=True),
    PageFunction("closure_jacobian", closed=True),
    PageFunction("placements"),
    PageFunction("time_step"),
    PageFunction("kinetic_energy"),
    PageFunction("potential_energy"),
    PageFunction("spring_energy"),
    PageFunction("twists"),
    PageFunction("inverse_dynamics", {"wrenches": True}),
    PageFunction("gravity_torque"),
    PageFunction("closure_bias", closed=True),
    PageFunction("driven_torques", closed=True),
    PageFunction("loop_loads", closed=True),
    PageFunction("contact_step"),
    PageFunction("contact_places"),
    PageFunction("inverse_kinematics"),
    PageFunction("reactions", {"wrenches": True}),
    PageFunction("twist_rates"),
    PageFunction("forward_dynamics", {"wrenches": True}),
    PageFunction("center_of_mass"),
    PageFunction("momentum"),
    PageFunction("inertia_matrix"),
    PageFunction("inverse_recursion"),
    PageFunction("forward_recursion"),
)
"""The functions of a page. Those that do not fit are left out, and with them the panels that need them."""


CONTACT = ("contact_step", "contact_places")
"""The functions without which a mechanism whose numbers change moves as if it had no ground."""
SHARED = 0.85
"""The part of its size by which a function of a humanoid adds to a module, since functions are alike: at least this."""
GROWTH = {INERTIA: 1.5, LENGTHS: 1.7, ROTATIONS: 2.4}
"""The factors by which functions of an arm grow at least with kinds of numbers as inputs; the largest one counts."""


def page_kernel(
    system: System,
    room: float,
    functions: Sequence[str] | None = None,
    *,
    editable: bool = False,
    ground: Ground | None = None,
    progress: Progress = lambda share: None,
) -> dict[str, Any] | None:
    """Return the modules of a System and what the page must know of them; None for mechanisms that are too long.

    `room` is the number of characters of the page that the modules may take. `functions` are names of FUNCTIONS, by
    default all of them that fit; those of contact need a `ground`. With `editable`, a second module has the numbers of
    the mechanism as inputs, as many kinds of them as fit; it is None if none do. `progress` is called between
    functions.
    """
    mechanism = system.mechanism
    if is_long(mechanism) or not system.nq:
        return None
    room -= room % ROUND  # data that differ by a few characters have the same modules

    def make() -> bytes:
        return pack(_made_kernel(system, room, functions, editable, ground, progress)).encode()

    if not cache.of_shipped_kinds(mechanism) or not _ships(functions):
        return _unpacked(make())
    asked = repr((room, functions, editable, ground, mechanism.source, mechanism.description))
    return _unpacked(cache.fetch(cache.digest("page", mechanism.hash, asked, packages=SOURCES), make))


ROUND = 1000.0
"""The room of modules is a multiple of this [characters]."""
SOURCES = (*cache.SOURCES, "analysis", "exporting", "formats", "page", "simulation")
"""The packages whose source determines the modules, which are kept in the cache of compiled code."""


def _ships(functions: Sequence[str] | None) -> bool:
    """Return whether all algorithms of the modules are those of this package."""
    return all(
        ALGORITHMS[f.name].page.__module__.startswith("kinetree.")
        for f in FUNCTIONS
        if f.name in ALGORITHMS and (functions is None or f.name in functions)
    )


def _unpacked(content: bytes) -> dict[str, Any]:
    """Return modules and what the page must know of them from their packed form."""
    made = unpack(content.decode())
    for part in (made, made["editable"]):
        if part is not None:
            part["wasm"] = bytes(part["wasm"])
    return made


def _made_kernel(
    system: System,
    room: float,
    functions: Sequence[str] | None,
    editable: bool,
    ground: Ground | None,
    progress: Progress,
) -> dict[str, Any]:
    """Return what `page_kernel` does, made anew."""
    mechanism = system.mechanism
    use = Use(last_frame(mechanism), ground)
    wasm, names = _fitting(system, use, room, functions, lambda share: progress((0.5 if editable else 1.0) * share))
    size = _size(wasm)
    return {
        "wasm": wasm,
        "editable": _editable(system, use, room - size, size, names, lambda share: progress(0.5 + 0.5 * share))
        if editable
        else None,
        "live": {name: list(x) for name, x in LiveInputs(mechanism).places.items()} if "time_step" in names else {},
        "thresholds": THRESHOLDS,
        "coordinates": [coordinates(mechanism).get(v, -1) for v in range(system.nv)],
        "frame": use.frame,
        "ground": page_ground(mechanism, ground) if ground is not None and "contact_step" in names else None,
    }


def _spring_energy(system: System) -> Program | None:
    """Return the energy (q) that the springs of a mechanism store [J]; None without springs."""
    springs: list[Any] = [force for force in forces_of(system.mechanism) if hasattr(force, "energy")]
    if not springs:
        return None
    program = measure_program(
        ForcedMechanism(system.mechanism), lambda now: sum(spring.energy(now) for spring in springs)
    )
    return replace(program, name="spring_energy")


def _driven_torques(system: System) -> Program | None:
    """Return the torques (q, qd, qdd) of a motion with every joint driven, with the forces of the mechanism."""
    if not _has_reactions(system):
        return None
    return replace(_straight(system, "inverse_dynamics", forces=True), name="driven_torques")


def _loop_loads(system: System) -> Program | None:
    """Return the reactions (q, qd, qdd, multipliers) at all joints and loops."""
    if not _has_reactions(system):
        return None
    loads, _ = loads_program(system.mechanism, idle_equations(system), (), forces=True, wrenches=False)
    return replace(loads, name="loop_loads")


def _has_reactions(system: System) -> bool:
    """Return whether loops have reactions: not those with equations of velocities alone."""
    return bool(system.mechanism.loops) and not system.mechanism.rolls


def _singular_values(mechanism: Mechanism) -> Kernel:
    """Return the function of all matrices of the page: Jacobians of frames and loops, and reactions by multipliers."""
    loops, closures = len(mechanism.loops), len(mechanism.closures)
    reactions = 6 * (len(mechanism.bodies) + loops) if loops else 0
    return singular_values_kernel(max(6 + closures, mechanism.nv, reactions), max(6, mechanism.nv, closures))


@dataclass(frozen=True)
class Use:
    """What a page does with its functions: the frame of inverse kinematics, and the ground that carries."""

    frame: str
    ground: Ground | None


def _on_ground(make: Callable[[Mechanism, Ground], Program | Kernel]) -> Callable[[System, Use], Any]:
    """Return the maker of a function that only mechanisms on a ground have."""
    return lambda system, use: None if use.ground is None else make(system.mechanism, use.ground)


MADE: dict[str, Callable[[System, Use], Program | Kernel | None]] = {
    "singular_values": lambda system, _: _singular_values(system.mechanism),
    "close_loops": lambda system, _: loop_closing_kernel(system.mechanism),
    "time_step": lambda system, _: live_step(system.mechanism, forces_of(system.mechanism))[0],
    "contact_step": _on_ground(contact_step),
    "contact_places": _on_ground(contact_places),
    "inverse_kinematics": lambda system, use: pose_kernel.pose_kernel(
        PoseEquations(system.mechanism, use.frame, (True,) * 6)
    ),
    "placements": lambda system, _: placements_program(system.mechanism),
    "spring_energy": lambda system, _: _spring_energy(system),
    "driven_torques": lambda system, _: _driven_torques(system),
    "loop_loads": lambda system, _: _loop_loads(system),
}
"""Functions of a System, and of its use in a page, that `System.function` does not have."""


def _editable(
    system: System, use: Use, left: float, size: float, names: Sequence[str], progress: Progress
) -> dict[str, object] | None:
    """Return the module with numbers as inputs, the places of these in the model, and the model as TOML."""
    carried = [name for name in names if name not in CONTACT]
    for kept in [names, carried] if len(carried) < len(names) else [names]:
        for kinds in TIERS:
            if size * max(GROWTH[kind] for kind in kinds) > left and kept is names:
                continue
            live = live_mechanism(system.mechanism, kinds)
            units = list(_units(System(live.mechanism, system.report), use, kept, progress))
            wasm = wasm_module(units, model=live.mechanism.name)
            if _size(wasm) <= left:
                return {
                    "wasm": wasm,
                    "slots": live.slots,
                    "kinds": list(kinds),
                    "toml": live.toml(),
                    "prefix": live.prefix,
                }
    return None


def _fitting(
    system: System, use: Use, room: float, functions: Sequence[str] | None, progress: Progress
) -> tuple[bytes, list[str]]:
    """Return a module of the functions that fit, and their names."""
    falls = not weightless_joints(system.mechanism)  # otherwise accelerations are not defined
    weighs = any(body.mass != 0.0 for body in system.mechanism.bodies)  # otherwise there is no center of mass
    named = [
        f.name
        for f in FUNCTIONS
        if (system.closures or not f.closed)
        and (functions is None or f.name in functions)
        and (falls or not _inverts(f))
        and (weighs or f.name != "center_of_mass")
    ]
    units = list(_units(system, use, named, progress))
    whole = wasm_module(units, model=system.mechanism.name)
    if _size(whole) <= room:
        return whole, [unit.name for unit in units]
    sizes = {unit.name: _size(wasm_module([unit])) for unit in units}
    kept: list[str] = []
    left = room
    for name, size in sizes.items():
        if size <= left:
            kept.append(name)
            left -= size

    def module(names: Sequence[str]) -> bytes:
        return wasm_module([unit for unit in units if unit.name in names], model=system.mechanism.name)

    whole = module(kept)  # functions together take less than the sum of their sizes
    for name, size in sizes.items():
        progress(1.0)
        if name not in kept and _size(whole) + SHARED * size <= room and _size(more := module([*kept, name])) <= room:
            kept, whole = [*kept, name], more
    return whole, kept


def _inverts(f: PageFunction) -> bool:
    """Return whether a function computes accelerations."""
    return f.name in ("time_step", "contact_step") or (f.name in ALGORITHMS and ALGORITHMS[f.name].inverts)


def _units(system: System, use: Use, names: Sequence[str], progress: Progress) -> Iterator[Program | Kernel]:
    """Yield functions of a System by name, without those that it cannot have."""
    for f in FUNCTIONS:
        if f.name not in names:
            continue
        progress(names.index(f.name) / len(names))
        unit = MADE[f.name](system, use) if f.name in MADE else _straight(system, f.name, **f.options)
        if unit is not None:
            yield unit


def _straight(system: System, name: str, **options: Any) -> Program:
    """Return the straight-line arithmetic of a function of a System, without compiling it for this processor."""
    return build(system.mechanism, Request(name, lowering="unrolled", **options).checked(system.mechanism))


def _size(wasm: bytes) -> float:
    return DENSITY * len(gzip.compress(wasm))


def last_frame(mechanism: Mechanism) -> str:
    """Return the frame that a reader moves first: the named one on the longest chain of bodies.

    Without named frames it is the body that closes the most loops, or else the last body of the longest chain.
    """
    depth = {body.name: len(path(mechanism, i)) for i, body in enumerate(mechanism.bodies)}
    named = [f for f in mechanism.frames if f.body != GROUND]
    if named:
        return max(enumerate(named), key=lambda entry: (depth[entry[1].body], entry[0]))[1].name
    ends = Counter(body for x in mechanism.loops for body in (x.body_a, x.body_b))
    return max(mechanism.bodies, key=lambda body: (ends[body.name], depth[body.name])).name
