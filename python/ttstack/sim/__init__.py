"""A card host without cards: an engine that behaves like vLLM on Tenstorrent to everything outside it."""
