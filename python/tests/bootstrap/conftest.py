"""The fixtures of these tests: see bootstrap_machine."""

from bootstrap_machine import bare, ready

__all__ = ["bare", "ready"]
