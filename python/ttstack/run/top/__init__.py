"""What goes on here now, looked at again and again: cards, slots, runs, and what their servers tell."""
