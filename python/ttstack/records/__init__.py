"""Schema 1, the append-only store, its reader."""
