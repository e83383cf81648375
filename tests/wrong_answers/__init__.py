"""Answers a student might give, one file an exercise notebook.

WRONG maps a starter's name to rows (words of the mistake that the check must
name, code); RIGHT to code that must be accepted although it is written
otherwise than the worked answer. The code defines the starter's function and
may use whatever its notebook imports and defines.
"""

import importlib
import pkgutil


def all_answers(kind):
    """(notebook, starter, row) of every row; kind: "WRONG" or "RIGHT"."""
    found = []
    for module in pkgutil.iter_modules(__path__):
        answers = getattr(importlib.import_module(f"{__name__}.{module.name}"), kind)
        notebook = f"{module.name.removeprefix('exercises_')}-exercises"
        found += [(notebook, name, row) for name in answers for row in answers[name]]
    return found
