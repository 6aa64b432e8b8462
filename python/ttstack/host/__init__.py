"""What is there: cards, processes, ports, files that are written by rename."""
