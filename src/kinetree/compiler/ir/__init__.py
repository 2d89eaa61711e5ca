"""The intermediate representation: operations, traces, and the Program that every target reads."""
