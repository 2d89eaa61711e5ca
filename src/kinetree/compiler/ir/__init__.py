"""The intermediate form: what is traced, and the Program that every target reads."""
