"""`python -m ciphercost`."""

from ciphercost.commands import main

main()
