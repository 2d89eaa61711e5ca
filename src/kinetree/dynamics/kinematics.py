"""Poses, twists and twist rates of bodies and frames, and steps in the space of coordinates."""

from __future__ import annotations

from ..algebra.propagation import Pose
from ..algebra.spatial import Twist, TwistRate
from ..algebra.vectors import neg, times


def poses(tree):
    """Return the 4x4 pose of every body's frame in the ground's."""
    place(tree)

    @tree.each
    def unturn(i):
        i.pose = i.T.then(i.to_work.matrix(), neg(i.height))

    return tree.bodies("pose")


def pose(tree, frame: str):
    """Return the 4x4 pose of one frame in the ground's."""
    f = tree.frame(frame)
    place(tree, tree.chain(f))
    return f.record.T.then(f.R, f.r).entries()


def twists(tree):
    """Return [omega; v] of every body about its joint's origin, in its own frame.         [Saha2013] (22)"""
    move(tree)

    @tree.each
    def unturn(i):
        i.own = i.in_body(i.t)

    return tree.bodies("own")


def twist(tree, frame: str, axes: str = "body"):
    """Return [omega; v] of one frame at its origin, in its own axes or the ground's."""
    f = tree.frame(frame)
    chain = tree.chain(f)
    move(tree, chain)
    return in_axes(tree, chain, f, f.A @ f.record.t, axes).entries()


def twist_rates(tree):
    """Return [domega; dv] of every body, the rates of (22) without gravity, in its own frame. [Saha2013] (23)"""
    accelerate(tree)

    @tree.each
    def unturn(i):
        i.own = i.in_body(i.dt)

    return tree.bodies("own")


def twist_rate(tree, frame: str, axes: str = "body"):
    """Return [domega; dv] of one frame, the acceleration of its origin included, in its own axes or the ground's."""
    f = tree.frame(frame)
    chain = tree.chain(f)
    accelerate(tree, chain)
    dt = f.A @ f.record.dt
    return in_axes(tree, chain, f, Twist(dt.dw, dt.dv), axes).entries()


def place(tree, part=None):
    """Store in every record (of a part of the tree) its pose T in the ground's frame."""
    tree.ground.T = Pose()

    @(part or tree).outward
    def stand(i, p):
        i.T = p.T @ i.A


def move(tree, part=None):
    """Store in every record (of a part of the tree) its twist t."""

    @(part or tree).outward
    def motion(i, p):
        i.t = i.A @ p.t + i.P @ i.qd  # (22)


def accelerate(tree, part=None):
    """Store in every record (of a part of the tree) its twist t and twist rate dt."""
    tree.ground.dt = TwistRate()
    move(tree, part)

    @(part or tree).outward
    def rates(i, p):
        i.dt = i.A @ p.dt + i.bias + i.P @ i.qdd  # (23)


def in_axes(tree, chain, f, t: Twist, axes: str) -> Twist:
    """Return a twist in a frame's own axes, or in the ground's axes."""
    if axes == "body":
        return t
    place(tree, chain)
    R = f.record.T.then(f.R, f.r).R
    return Twist(times(R, t.w), times(R, t.v))


# --- Steps in the space of coordinates, joint by joint: quaternions keep unit length, angles add ---


def integrate(tree):
    """Return q displaced by dq (given in place of qd), exactly for a constant twist of each joint."""

    @tree.each
    def move(i):
        i.moved = i.kind.integrate(i.joint, i.q, i.qd)

    return tree.joints("moved")


def difference(tree):
    """Return the displacement dq from qa to qb (given in place of q and q2)."""

    @tree.each
    def compare(i):
        i.way = i.kind.difference(i.joint, i.q, i.q2)

    return tree.joints("way")


def coordinate_rate(tree):
    """Return dq/dt for the velocities qd."""

    @tree.each
    def differentiate(i):
        i.rate = i.kind.rate(i.joint, i.q, i.qd)

    return tree.joints("rate")
