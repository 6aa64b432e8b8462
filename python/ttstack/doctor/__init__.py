"""Whether this host is fit to run anything, and what to do when it is not."""
