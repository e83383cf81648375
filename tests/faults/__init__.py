"""The faults that the notebooks must reject, one file a notebook.

Each fault changes one cell of one notebook as a careless author might. Planted
in a copy, it must make the notebook's own nbval run fail, in the cell named
`caught_by`. A fault whose `old` text no longer stands exactly once in its cell
is stale, and fails too.
"""

import importlib
import pkgutil
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    lesson: "46" or "46-exercises"; name: what goes wrong; cell: id of the cell to change;
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
    """Every row of every lesson_NN.py and exercises_NN.py here, as a Fault."""
    faults = []
    for module in pkgutil.iter_modules(__path__):
        rows = importlib.import_module(f"{__name__}.{module.name}").ROWS
        kind, number = module.name.split("_")
        lesson = number if kind == "lesson" else f"{number}-{kind}"
        faults += [Fault(lesson, *row) for row in rows]
    return faults


FAULTS = all_faults()
