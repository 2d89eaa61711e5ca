"""Controllers: compiled, sampled, in Python, from CasADi."""
