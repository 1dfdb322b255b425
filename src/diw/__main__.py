"""`python -m diw` is the command `diw`."""

from diw.cli.main import main

main()
