"""Up, supervise, identify, down: one run from arm to record."""
