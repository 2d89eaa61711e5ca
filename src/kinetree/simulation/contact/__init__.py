"""Hard contact with Coulomb friction: the cone problem, impacts, modes, and event-driven runs."""
