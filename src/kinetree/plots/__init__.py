"""Pictures of mechanisms, runs and studies by matplotlib."""
