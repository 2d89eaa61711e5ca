"""Functions of tensors in torch's graph of gradients."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, NoReturn

from .._support import optional
from ..errors import InputError
from ..runtime.derived import Derivable, Pullback, Pushforward, pullback, pushforward


def needs_gradient(tensors: Sequence[object]) -> bool:
    """Return whether torch differentiates a call on these arrays, some of which may belong to other libraries."""
    if any(getattr(x, "requires_grad", False) for x in tensors) and optional.torch().is_grad_enabled():
        return True
    torch = sys.modules.get("torch")
    return torch is not None and in_forward_mode(torch) and any(isinstance(x, torch.Tensor) for x in tensors)


def in_forward_mode(torch: ModuleType) -> bool:
    """Return whether tensors may have tangents: inside `dual_level` of torch's forward mode, or in `torch.func.jvp`."""
    return getattr(torch.autograd.forward_ad, "_current_level", 0) >= 0


@dataclass(frozen=True, eq=False)
class Node:
    """A function of tensors with its products: `pull` returns that with cotangents, `push` that with tangents.

    `inputs` and `outputs` are the numbers of axes of its tensors that are not leading ones.
    """

    run: Callable[..., Any]
    pull: Callable[[], Pullback]
    push: Callable[[], Pushforward]
    inputs: Sequence[int]
    outputs: Sequence[int]

    def call(self, kind: str, *tensors: Any) -> Any:
        """Return the results of the function, or of one of its products, for tensors without their history."""
        function = self.run if kind == VALUE else self.push() if kind == FORWARD else self.pull()
        return function(*(x.detach() for x in tensors))

    def axes(self, kind: str) -> tuple[int, ...]:
        """Return the numbers of axes of the tensors of a call that are not leading ones."""
        return (*self.inputs, *{VALUE: (), FORWARD: self.inputs, REVERSE: self.outputs}[kind])


def node_of(
    function: Derivable, forward: Callable[..., object], run: Callable[..., object], fixed: Sequence[object] = ()
) -> Node:
    """Return the node of a compiled function, which `forward` calls and `run` its products.

    `fixed` are the values of its last inputs, which have no gradients and are no arguments of `forward`.
    """
    inputs = function.inputs[: len(function.inputs) - len(fixed)]
    return Node(
        forward,
        lambda: pullback(function, run, fixed),
        lambda: pushforward(function, run, fixed),
        [len(a.shape) for a in inputs],
        [len(a.shape) for a in function.outputs],
    )


def refuse_out(name: str, out: object) -> None:
    """Raise InputError for an array of results that torch should differentiate."""
    if out is not None:
        raise InputError(f"{name}: out cannot be part of torch's graph of gradients; use torch.no_grad()")


VALUE, FORWARD, REVERSE = "value", "jvp", "vjp"
"""The kinds of calls. Their tensors are x; x and tangents; x and cotangents."""
TWICE = "{} differentiates functions of a mechanism once; second derivatives are those of system.function(name).hvp"
"""The reason why a derivative is not differentiated again, by the name of a library."""


def record_node(node: Node, tensors: Sequence[object]) -> Any:
    """Run a function of tensors as a node of torch's graph."""
    usual = not in_forward_mode(optional.torch()) and all(map(_has_memory, tensors))
    return (_reverse() if usual else _both()).apply(node, *tensors)


def _has_memory(x: Any) -> bool:
    """Return whether a tensor has memory of its own; tensors in torch.func's transformations have none."""
    try:
        x.data_ptr()
    except RuntimeError:
        return False
    return True


@cache
def _both() -> Any:
    """Return the function of torch for both modes."""
    torch, product = optional.torch(), _product()

    class Compiled(torch.autograd.Function):
        """A compiled function with its derivatives."""

        @staticmethod
        def forward(node: Node, *tensors: object) -> object:
            """Run the function."""
            return node.call(VALUE, *tensors)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
            """Keep the tensors for both modes."""
            ctx.node, *tensors = inputs
            ctx.save_for_backward(*tensors)
            ctx.save_for_forward(*tensors)

        @staticmethod
        def jvp(ctx: Any, _: object, *tangents: object) -> Any:
            """Return the tangents of the results."""
            tensors = ctx.saved_tensors
            given = [torch.zeros_like(x) if t is None else t for x, t in zip(tensors, tangents, strict=True)]
            return product.apply(ctx.node, FORWARD, *tensors, *given)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            """Return the cotangents of the tensors; with create_graph, they refuse to be differentiated again."""
            tensors = (*ctx.saved_tensors, *cotangents)
            if torch.is_grad_enabled() or in_forward_mode(torch):
                return (None, *product.apply(ctx.node, REVERSE, *tensors))
            return (None, *ctx.node.call(REVERSE, *tensors))

        @staticmethod
        def vmap(info: Any, axes: Any, node: Node, *tensors: Any) -> Any:
            """Return the results for a batch along any axes of the tensors."""
            return _batched(info.batch_size, axes[1:], node.axes(VALUE), tensors, lambda x: Compiled.apply(node, *x))

    return Compiled


@cache
def _product() -> Any:
    """Return the function of torch for products, which are not differentiated again."""
    torch = optional.torch()

    class Product(torch.autograd.Function):
        """A product of a function's Jacobian as a function of all that it depends on, without derivatives."""

        @staticmethod
        def forward(node: Node, kind: str, *tensors: object) -> object:
            """Run the product."""
            return node.call(kind, *tensors)

        @staticmethod
        def setup_context(ctx: object, inputs: tuple[object, ...], output: object) -> None:
            """Keep nothing."""

        @staticmethod
        def jvp(_: object, *__: object) -> NoReturn:
            """Raise InputError."""
            raise InputError(TWICE.format("torch"))

        @staticmethod
        def backward(_: object, *__: object) -> NoReturn:
            """Raise InputError."""
            raise InputError(TWICE.format("torch"))

        @staticmethod
        def vmap(info: Any, axes: Any, node: Node, kind: str, *tensors: Any) -> Any:
            """Return the product for a batch along any axes of the tensors."""
            found, places = _batched(
                info.batch_size, axes[2:], node.axes(kind), tensors, lambda x: Product.apply(node, kind, *x)
            )
            if kind == REVERSE:  # of the shapes of the tensors, without the axes that were inserted
                pairs = zip(tensors, axes[2:], strict=True)
                shapes = [x.shape if k is None else x.movedim(k, 0).shape[1:] for x, k in pairs]
                pairs = zip(found, shapes[: len(found)], strict=True)
                found = tuple(x.reshape(info.batch_size, *shape) for x, shape in pairs)
            return found, places

    return Product


@cache
def _reverse() -> Any:
    """Return the function of torch for reverse mode alone, which takes less time."""
    torch = optional.torch()

    class Reverse(torch.autograd.Function):
        """A compiled function with its gradient, for tensors outside torch.func."""

        @staticmethod
        def forward(ctx: Any, node: Node, *tensors: Any) -> object:
            """Run the function."""
            ctx.node = node
            ctx.save_for_backward(*tensors)
            return node.call(VALUE, *tensors)

        backward = staticmethod(_both().backward)

    return Reverse


def _batched(
    size: int, axes: Sequence[int | None], own: Sequence[int], tensors: Sequence[Any], call: Callable[..., Any]
) -> tuple[Any, Any]:
    """Return the results of a call whose tensors have a batch along some axes, and its axis in each result.

    The batch becomes the first leading axis of all tensors, and further axes are inserted behind it, so that leading
    shapes of different lengths still fit together.
    """
    wide = [
        x.unsqueeze(0).expand(size, *x.shape) if k is None else x.movedim(k, 0)
        for x, k in zip(tensors, axes, strict=True)
    ]
    most = max(x.ndim - n for x, n in zip(wide, own, strict=True))
    found = call([x.reshape(size, *[1] * (most - x.ndim + n), *x.shape[1:]) for x, n in zip(wide, own, strict=True)])
    return found, (0,) * len(found) if isinstance(found, tuple) else 0
