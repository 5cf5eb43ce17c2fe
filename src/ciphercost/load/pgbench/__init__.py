"""pgbench's script language: expressions, meta commands, and what a script makes of them. Pure, but for the rules of each file."""
