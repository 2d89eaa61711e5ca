"""Environments of learning: tasks whose reset, motion, observation and reward are one native call over a batch.

The import registers the tasks with Gymnasium, where that is installed, so that it finds them by
gymnasium.make("kinetree.environments:kinetree/CartPole-v0").
"""

from importlib.util import find_spec

if find_spec("gymnasium") is not None:
    from .vector import register

    register()
