"""Libraries of arrays that may be missing, imported by the functions that need them."""

from __future__ import annotations

from typing import Any

from ...errors import InputError


def cupy() -> Any:
    """Return the module cupy."""
    import cupy  # pyright: ignore[reportMissingImports]

    return cupy


def casadi() -> Any:
    """Return the module casadi; InputError if it is not installed."""
    try:
        import casadi
    except ImportError as error:
        raise InputError(f"CasADi cannot be imported ({error}); install it: pip install casadi") from None
    return casadi


def torch() -> Any:
    """Return the module torch; InputError if it is not installed."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError(f"torch cannot be imported ({error}); install it: pip install kinetree[learning]") from None
    return torch


def jax() -> Any:
    """Return the module jax, with jax.numpy and jax.ffi; InputError if it is not installed, or too old."""
    try:
        import jax  # pyright: ignore[reportMissingImports]
        import jax.ffi  # pyright: ignore[reportMissingImports]
        import jax.numpy  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError(
            f"JAX with its module jax.ffi cannot be imported ({error}); install jax 0.5 or newer: "
            "pip install kinetree[learning]"
        ) from None
    return jax
