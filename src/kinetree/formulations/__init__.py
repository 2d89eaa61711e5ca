"""Independent routes to the same equations, in plain matrices: never used by dynamics/, never using it."""
