"""Kinematic modules: the serial chains that form a tree."""

from __future__ import annotations

from dataclasses import dataclass

from .. import joints as joint_kinds
from ..model import topology
from ..model.mechanism import Mechanism
from .links import Links


@dataclass(frozen=True)
class Module:
    """A serial chain of links that starts at the last link of its parent module.              [Saha2013] 3

    `number` is the index i of the paper's M_i. `parent` is an index into the list of modules, -1 for the ground. `rows`
    are the module's rows in the twists of all bodies, `dofs` its entries in the joint velocities.
    """

    number: int
    parent: int
    links: tuple[int, ...]
    names: tuple[str, ...]
    rows: slice
    dofs: slice

    @property
    def label(self) -> str:
        """The name of the module, such as M_1."""
        return f"M_{self.number}"

    def __repr__(self) -> str:
        """Return the label and the links."""
        return f"<module {self.label}: {' - '.join(self.names)}>"


def first_number(mechanism: Mechanism) -> int:
    """Return the number of the first module: 0 if it is a floating body that carries all others, else 1."""
    roots = [i for i, parent in enumerate(mechanism.parents) if parent < 0]
    floats = len(roots) == 1 and len(topology.modules(mechanism)[0]) == 1
    return 0 if floats and joint_kinds.kind(mechanism.joints[0].kind).NV == 6 else 1


def chains(tree: Links, mechanism: Mechanism) -> tuple[Module, ...]:
    """Return the modules of a mechanism, parents first."""
    found = topology.modules(mechanism)
    last = {chain[-1]: m for m, chain in enumerate(found)}
    out = []
    for m, chain in enumerate(found):
        first, end = tree.each[chain[0]], tree.each[chain[-1]]
        out.append(
            Module(
                number=m + first_number(mechanism),
                parent=last.get(first.parent, -1),
                links=chain,
                names=tuple(tree.each[i].name for i in chain),
                rows=slice(6 * chain[0], 6 * chain[-1] + 6),  # in depth order the bodies of a chain are adjacent
                dofs=slice(first.dofs.start, end.dofs.stop),
            )
        )
    return tuple(out)
