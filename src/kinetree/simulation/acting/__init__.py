"""Controllers: compiled with the mechanism, sampled, written in Python, or imported from CasADi."""
