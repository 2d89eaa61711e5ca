"""The studio: the web page served on this machine, with Python for files, new mechanisms and long runs."""
