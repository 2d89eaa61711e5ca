"""Environments of learning: tasks whose reset, motion, observation and reward are one native call over a batch.

The import registers the tasks with Gymnasium, where that is installed, so that it finds them by
gymnasium.make("kinetree.environments:kinetree/CartPole-v0").
"""

from contextlib import suppress

from .._support.optional import PackageMissing
from .vector import register

with suppress(PackageMissing):  # tasks and batches need no Gymnasium; what needs it says so
    register()
