"""Export of the functions of a System, of its control and of its integrators as files for other machines."""
