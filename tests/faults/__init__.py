"""The faults that the lessons must reject, one file a lesson.

Each fault changes one cell of one lesson as a careless author might. Planted
in a copy, it must make the lesson's own nbval run fail, in the cell named
`caught_by`. A fault whose `old` text no longer stands exactly once in its cell
is stale, and fails too.
"""

import importlib
import pkgutil
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    lesson: "46"; name: what goes wrong; cell: id of the cell to change;
    old, new: the exact text and what replaces it; caught_by: id of the first
    cell that must fail.
    """

    lesson: str
    name: str
    cell: str
    old: str
    new: str
    caught_by: str

    @property
    def id(self):
        """How the fault is called in test names."""
        return f"{self.lesson}: {self.name}"


def all_faults():
    """Every row of every lesson_NN.py beside this file, as a Fault."""
    faults = []
    for module in pkgutil.iter_modules(__path__):
        rows = importlib.import_module(f"{__name__}.{module.name}").ROWS
        lesson = module.name.removeprefix("lesson_")
        faults += [Fault(lesson, *row) for row in rows]
    return faults


FAULTS = all_faults()
