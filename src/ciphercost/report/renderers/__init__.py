"""How blocks look: one file for each kind of output. Pure."""
