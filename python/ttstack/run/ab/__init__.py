"""Carrying out an A/B: its runs, one pair after the other, each an ordinary run with a record of its own."""
