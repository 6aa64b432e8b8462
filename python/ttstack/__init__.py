"""ttstack: arms, slots, runs and records for Tenstorrent Blackhole card hosts."""

__version__ = "0.1.0"
