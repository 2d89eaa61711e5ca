"""The equations of small mechanisms in symbols."""
