"""The measuring client and the suites."""
