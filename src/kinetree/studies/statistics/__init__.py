"""Statistics of studies: bands over time, histograms, failure probabilities, and sensitivity indices."""
