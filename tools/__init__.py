"""The programs behind the commands of the Makefile: `python -m tools VERB`."""
