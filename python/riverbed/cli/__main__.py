"""`python -m riverbed.cli`."""

from riverbed.cli import command

command()
