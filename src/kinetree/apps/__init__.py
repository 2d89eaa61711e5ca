"""Applications on top of the library: command line, studio, lessons, walking, demonstration, the papers' figures."""
