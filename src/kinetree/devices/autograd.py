"""Functions of tensors in torch's graph of gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ..compiler.runtime import optional
from ..compiler.runtime.gradients import Pullback
from ..errors import InputError


def needs_gradient(tensors: Sequence[Any]) -> bool:
    """Return whether torch records a call on these arrays, some of which may belong to other libraries."""
    if not any(getattr(x, "requires_grad", False) for x in tensors):
        return False
    return optional.torch().is_grad_enabled()


def recorded(run: Callable[..., Any], pull: Callable[[], Pullback], tensors: Sequence[Any]) -> Any:
    """Run a function of tensors as a node of torch's graph; `pull` returns its vector-Jacobian product."""
    return _node().apply(run, pull, *tensors)


TWICE = "{} differentiates functions of a mechanism once; second derivatives are those of system.function(name).hvp"
"""The reason why a gradient is not differentiated again, by the name of a library."""


@cache
def _node() -> Any:
    torch = optional.torch()

    class Compiled(torch.autograd.Function):
        """A compiled function with its gradient."""

        @staticmethod
        def forward(ctx: Any, run: Callable[..., Any], pull: Callable[[], Pullback], *tensors: Any) -> Any:
            """Run the function on tensors without their history."""
            ctx.pull = pull
            ctx.save_for_backward(*tensors)
            return run(*(x.detach() for x in tensors))

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            """Return the cotangents of the tensors; with create_graph, they refuse to be differentiated again."""
            with torch.no_grad():
                found = ctx.pull()(*ctx.saved_tensors, *cotangents)
            if torch.is_grad_enabled():
                found = tuple(Once.apply(x, *ctx.saved_tensors, *cotangents) for x in found)
            return (None, None, *found)

    class Once(torch.autograd.Function):
        """A gradient as a function of everything that it depends on, without derivatives."""

        @staticmethod
        def forward(_: Any, found: Any, *__: Any) -> Any:
            """Return the gradient."""
            return found.clone()

        @staticmethod
        def backward(_: Any, *__: Any) -> Any:
            """Raise InputError."""
            raise InputError(TWICE.format("torch"))

    return Compiled
