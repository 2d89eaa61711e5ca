"""Forces on a moving mechanism: in its joints and at points of its bodies."""
