"""Imports of optional packages, by the functions that need them."""

from __future__ import annotations

import importlib
from types import ModuleType

from ..errors import InputError


class PackageMissing(InputError):
    """An optional package is not installed: the message has the command that installs it."""


def casadi() -> ModuleType:
    """Return the module casadi; an InputError names its extra."""
    return optional("casadi", "Functions of CasADi, the method bdf and the route lagrange", "optimal")


def optional(package: str, purpose: str, extra: str = "results") -> ModuleType:
    """Import an optional package, or raise PackageMissing, which names the command to install it.

    Without an `extra` (""), that command installs the package alone.
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        raise missing(package, purpose, extra) from None


def missing(package: str, purpose: str, extra: str) -> PackageMissing:
    """Return the error that names an optional package and the command to install it."""
    wanted = f"pip install 'kinetree[{extra}]'" if extra else pip_install(package)
    return PackageMissing(f"{purpose} need the package {package.partition('.')[0]}, which is not installed; {wanted}")


def pip_install(module: str) -> str:
    """Return the command that installs the package of a module, whose name may be another one."""
    name = module.partition(".")[0]
    return f"pip install {PIP_NAMES.get(name, name)}"


PIP_NAMES = {"pinocchio": "pin"}
"""What pip calls packages whose modules have other names: its "pinocchio" is something else."""


# --- Libraries of arrays that may be missing, imported by the functions that need them ---


def cupy() -> ModuleType:
    """Return the module cupy."""
    import cupy  # pyright: ignore[reportMissingImports]

    return cupy


def torch() -> ModuleType:
    """Return the module torch; InputError if it is not installed."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError(f"torch cannot be imported ({error}); install it: pip install 'kinetree[learning]'") from None
    return torch


def jax() -> ModuleType:
    """Return the module jax, with jax.numpy and jax.ffi; InputError if it is not installed, or too old."""
    try:
        import jax  # pyright: ignore[reportMissingImports]
        import jax.ffi  # pyright: ignore[reportMissingImports]
        import jax.numpy  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError(
            f"JAX with its module jax.ffi cannot be imported ({error}); install jax 0.5 or newer: "
            "pip install 'kinetree[learning]'"
        ) from None
    return jax
