"""Methods of integration: their numbers, their steps as lane kernels, and the derivatives of those steps."""
