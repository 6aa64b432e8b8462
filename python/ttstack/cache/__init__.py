"""Tensor caches that cannot lie: key, marker, registry, seeding, reservation, gc."""
