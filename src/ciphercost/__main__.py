"""python -m ciphercost."""

from ciphercost.cli import main

main()
