# The host's Python, as "3.11"; null: any that a supported distribution has. `bootstrap` puts the host's in a copy.
null
