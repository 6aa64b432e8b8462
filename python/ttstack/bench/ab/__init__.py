"""The statistics of an A/B: what the difference of two arms is, and whether it can be told from noise."""
