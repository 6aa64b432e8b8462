"""The suites, one file each, and what they share."""
