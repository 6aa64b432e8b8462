"""The measuring client: data in ``types``, the way in is ``load.run_load``."""
