"""Write copies of the exercise notebooks without their worked answers.

    make handout              # all, into _build/handout/
    make handout LESSON=46    # those of one lesson

What is under "Worked answer" goes, text, code and output. What stays is the
task, the starter, the check and the hint: a copy runs, and its checks say of
every exercise that it was not attempted yet.
"""

import argparse
import sys

import nbformat

from check_notebooks import ROOT, display_name, problems
from exercise_form import ANSWER, close, is_exercises, sections
from run_lessons import find_lessons, save

HANDOUT = ROOT / "_build" / "handout"


def without_answers(notebook):
    """A copy of an exercise notebook without what is under "Worked answer"."""
    copy = nbformat.from_dict(notebook)
    copy.cells = [cell for cell, section in sections(copy) if section != ANSWER]
    close(copy)
    return copy


def main(arguments):
    """Write the handouts of the lessons named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lesson", nargs="*", help="46, 45 …; all by default")
    chosen = find_lessons(parser.parse_args(arguments).lesson)
    exercises = [path for path in chosen if is_exercises(path)]
    # out of form, an answer could stand where it is not looked for
    found = [line for path in exercises for line in problems(path)]
    if found:
        print("\n".join(found), "nothing was written", sep="\n", file=sys.stderr)
        return 1
    HANDOUT.mkdir(parents=True, exist_ok=True)
    for path in exercises:
        save(without_answers(nbformat.read(path, as_version=4)), HANDOUT / path.name)
        print(display_name(HANDOUT / path.name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
