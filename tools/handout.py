"""Write the exercise notebooks without their worked answers: `make handout LESSON=46`.

What is under "Worked answer" goes: text, code and output. The task, the starter, the
check and the hint stay, so that a copy runs before anything in it is solved.
"""

import sys

from tools.execute import save
from tools.form import ANSWER, closed, problems, sections
from tools.notebooks import ROOT, display_name, find, is_exercises, read

HANDOUT = ROOT / "_build" / "handout"


def main(arguments: list[str]) -> int:
    """Write the handouts of the lessons named, or of all; 1 if one is out of form."""
    paths = [path for path in find(arguments) if is_exercises(path)]
    # Out of form, an answer could stand where it is not looked for.
    if found := [line for path in paths for line in problems(path)]:
        print(*found, "nothing was written", sep="\n", file=sys.stderr)
        return 1
    HANDOUT.mkdir(parents=True, exist_ok=True)
    for path in paths:
        notebook = read(path)
        parts = sections(notebook)
        notebook.cells = [cell for cell, section in parts if section != ANSWER]
        save(closed(notebook), HANDOUT / path.name)
        print(display_name(HANDOUT / path.name))
    return 0
