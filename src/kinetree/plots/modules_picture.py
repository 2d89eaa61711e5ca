"""A picture of the kinematic modules: serial chains of links, one color per module, in layers above the ground."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import joints as joint_kinds
from .._support.tables import count_text
from ..formulations.modules import first_number
from ..model import topology
from ..model.mechanism import Mechanism
from .figures import COLORS, _figure, _style, finish_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = "#606060"
LINK, GAP, MARGIN = 0.42, 0.38, 0.18
"""Height of a link, space between links, and margin of a module around its links [in]."""
LEVEL, SPACE, FOOT = 0.95, 0.45, 0.5
"""Space between layers of modules and between neighbors, and height of the ground [in]."""
LETTER, LONGEST = 0.082, 24
"""Width of a letter of a name [in], and the most letters shown of a name."""
MOST = 14
"""The most links shown of a module, to fit a page; the middle of a longer one is left out."""


@dataclass(frozen=True)
class _Box:
    """A module on the page: links (None where some are left out), parent, center, base, width and height [in]."""

    links: tuple[int | None, ...]
    parent: int
    x: float
    y: float
    width: float
    height: float

    def middle(self, k: int) -> float:
        """Return the height of the middle of its k-th link."""
        return self.y + MARGIN + LINK / 2 + k * (LINK + GAP)


def modules_picture(mechanism: Mechanism, path: str | Path | None = None) -> Figure:
    """Draw the modules of a mechanism as a tree on the ground and return the figure; write it to `path` if given.

    A box is a module M_i, a capsule a link with its name, a circle a joint with its number of degrees of freedom, and a
    square a fixed joint. A dashed line is a loop between two bodies. Modules are numbered as in [Saha2013] 3.
    """
    boxes = _layout(mechanism)
    count = len(topology.modules(mechanism))
    title = f"{_short(mechanism.name)}: {count_text(count, 'module')}, {count_text(len(mechanism.bodies), 'link')}"
    title += f", {count_text(mechanism.nv, 'degree')} of freedom"
    used = max((b.x + b.width / 2 for b in boxes), default=0.0) + 0.3
    width = max(used, 0.09 * len(title) + 0.3)
    boxes = [replace(b, x=b.x + (width - used) / 2) for b in boxes]
    height = max((b.y + b.height for b in boxes), default=1.0) + 0.65
    with _style():
        figure = _figure((width, height), layout=None)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_xlim(0.0, width)
        axes.set_ylim(0.0, height)
        axes.set_axis_off()
        _ground(axes, width)
        for m, box in enumerate(boxes):
            _module(axes, mechanism, boxes, box, m + first_number(mechanism))
        _loops(axes, mechanism, boxes)
        axes.text(0.2, height - 0.3, title, fontsize=11, fontweight="bold", parse_math=False)
    finish_figure(figure, path)
    return figure


def _layout(mechanism: Mechanism) -> list[_Box]:
    """Return the modules in layers, each above its parent, with a parent centered under its children."""
    chains = topology.modules(mechanism)
    last = {chain[-1]: m for m, chain in enumerate(chains)}
    parents = [last.get(mechanism.parents[chain[0]], -1) for chain in chains]
    shown = [_shorten_chain(chain) for chain in chains]
    widths = [_width(mechanism, chain) for chain in shown]
    heights = [len(chain) * (LINK + GAP) - GAP + 2 * MARGIN for chain in shown]
    below = [[c for c, p in enumerate(parents) if p == m] for m in range(len(chains))]
    spans, rows = [0.0] * len(chains), [0.0] * len(chains)
    for m in reversed(range(len(chains))):
        rows[m] = sum(spans[c] for c in below[m]) + SPACE * (len(below[m]) - 1)
        spans[m] = max(widths[m], rows[m])
    out: list[_Box] = []
    left, free = [0.0] * len(chains), 0.3
    for m, chain in enumerate(shown):
        if parents[m] < 0:
            left[m], free = free, free + spans[m] + SPACE
        y = FOOT + 0.75 * LEVEL if parents[m] < 0 else out[parents[m]].y + out[parents[m]].height + LEVEL
        out.append(_Box(chain, parents[m], left[m] + spans[m] / 2, y, widths[m], heights[m]))
        at = left[m] + (spans[m] - rows[m]) / 2
        for c in below[m]:
            left[c], at = at, at + spans[c] + SPACE
    return out


def _shorten_chain(chain: tuple[int, ...]) -> tuple[int | None, ...]:
    return chain if len(chain) <= MOST else (*chain[: MOST - 5], None, *chain[-4:])


def _width(mechanism: Mechanism, chain: tuple[int | None, ...]) -> float:
    letters = max(len(_short(mechanism.bodies[i].name)) for i in chain if i is not None)
    return max(0.9, LETTER * letters + 0.3) + 2 * MARGIN


def _ground(axes: Axes, width: float) -> None:
    from matplotlib.patches import Rectangle

    hatch = Rectangle((0.2, FOOT - 0.14), width - 0.4, 0.14, facecolor="none", edgecolor="#a0a0a0", hatch="////")
    hatch.set_linewidth(0)
    axes.add_patch(hatch)
    axes.plot([0.2, width - 0.2], [FOOT, FOOT], color=GREY, linewidth=1.2)
    axes.text(width - 0.22, FOOT + 0.06, "ground", ha="right", fontsize=9, color=GREY)


def _module(axes: Axes, mechanism: Mechanism, boxes: list[_Box], box: _Box, number: int) -> None:
    color = COLORS[number % len(COLORS)]
    left = box.x - box.width / 2
    _capsule(axes, left, box.y, box.width, box.height, 0.14, facecolor=color, alpha=0.13, edgecolor="none")
    axes.text(left + 0.02, box.y + box.height + 0.05, f"$M_{{{number}}}$", fontsize=11, color=color)
    _edge(axes, mechanism, boxes, box)
    for k, i in enumerate(box.links):
        if i is None:
            axes.text(box.x, box.middle(k), ". . .", ha="center", va="center", fontsize=12, color=color, zorder=4)
            continue
        if k:
            _joint(axes, mechanism, i, [(box.x, box.middle(k - 1) + LINK / 2), (box.x, box.middle(k) - LINK / 2)])
        where = (left + MARGIN, box.middle(k) - LINK / 2, box.width - 2 * MARGIN, LINK, LINK / 2)
        _capsule(axes, *where, facecolor="white", edgecolor=color, linewidth=1.4, zorder=3)
        name = _short(mechanism.bodies[i].name)
        axes.text(box.x, box.middle(k), name, ha="center", va="center", fontsize=9.5, zorder=4, parse_math=False)


def _capsule(axes: Axes, x: float, y: float, width: float, height: float, radius: float, **style: Any) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(FancyBboxPatch((x, y), width, height, f"round,pad=0,rounding_size={radius}", **style))


def _edge(axes: Axes, mechanism: Mechanism, boxes: list[_Box], box: _Box) -> None:
    """Draw the joint between a module and the last link of its parent, or the ground."""
    first, end = box.links[0], (box.x, box.y + MARGIN)
    assert first is not None
    if box.parent < 0:
        _joint(axes, mechanism, first, [(box.x, FOOT), end])
        return
    parent = boxes[box.parent]
    turn = parent.y + parent.height + 0.36 * LEVEL
    start = (parent.x, parent.middle(len(parent.links) - 1) + LINK / 2)
    _joint(axes, mechanism, first, [start, (parent.x, turn), (box.x, turn), end])


def _joint(axes: Axes, mechanism: Mechanism, i: int, line: list[tuple[float, float]]) -> None:
    """Draw a joint on the last section of a line: a circle with its degrees of freedom, or a square if fixed."""
    joint = mechanism.joints[i]
    count = joint_kinds.kind(joint.kind).NV
    axes.plot(*zip(*line, strict=True), color=GREY, linewidth=1.1, zorder=2, solid_joinstyle="round")
    (x, low), (_, high) = line[-2], line[-1]
    y = (low + high - (MARGIN if len(line) > 2 or low == FOOT else 0.0)) / 2
    axes.plot(x, y, marker="o" if count else "s", markersize=10 if count else 6, color="white", mec=GREY, zorder=5)
    if count:
        axes.text(x, y - 0.003, str(count), ha="center", va="center", fontsize=7.5, zorder=6)
    axes.text(x + 0.12, y, joint_kinds.kind(joint.kind).SYMBOL, fontsize=7.5, color=GREY, va="center")


def _loops(axes: Axes, mechanism: Mechanism, boxes: list[_Box]) -> None:
    from matplotlib.patches import FancyArrowPatch

    place = {
        mechanism.bodies[i].name: (box.x + box.width / 2 - MARGIN, box.middle(k))
        for box in boxes
        for k, i in enumerate(box.links)
        if i is not None
    }
    for loop in mechanism.loops:
        known = [place.get(name) for name in (loop.body_a, loop.body_b)]
        foot = next((p for p in known if p is not None), (0.5, FOOT))[0] + 0.5
        a, b = (p if p is not None else (foot, FOOT) for p in known)
        arc = FancyArrowPatch(a, b, connectionstyle="arc3,rad=0.35", arrowstyle="-", linestyle="--", color="#a03060")
        arc.set_zorder(1)
        axes.add_patch(arc)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."
