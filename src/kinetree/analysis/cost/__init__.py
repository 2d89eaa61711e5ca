"""The cost of a function: its operations and its time."""
