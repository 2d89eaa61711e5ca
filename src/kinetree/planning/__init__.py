"""Planning: the fastest motion along a path, and optimal motions between states, within limits of the drives."""
