"""Environments of learning: tasks whose reset, motion, observation and reward are one native call over a batch."""
