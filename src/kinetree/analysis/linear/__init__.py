"""Small motions: equations linearized at a state, positions of equilibrium, and modes of vibration."""
