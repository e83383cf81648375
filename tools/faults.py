"""Plant faults in a notebook, one at a time; each must be found wrong.

    python -m tools faults 46           all mutants of Lesson 46, and its listed faults
    python -m tools faults 46 --drawn   those that `make test` tries

The notebook's cells run once, in one process, and must print what is stored (by the
bands, as for nbval). Before a cell that is to be changed the process forks, and the
child goes on with the changed cell. A fault is "wrong" where a cell prints otherwise or
an assertion fails; any other error, or no end, is "does not run", and says nothing.
What survives in a function is put to the drawn inputs of tests/lessons.

A mutant runs to the next training cell after its first use. Where the first use is
itself training it is slow, and of slow ones only a few are tried.
"""

import ast
import contextlib
import gc
import hashlib
import io
import json
import os
import re
import signal
import sys
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

from tools.bands import sanitize
from tools.mutants import Fault, mutants
from tools.notebooks import (
    data_of,
    definitions_of,
    find,
    name_of,
    path_of,
    printed,
    read,
)

DRAWN, DRAWN_SLOW, ALL_SLOW = 80, 1, 4  # mutants a notebook
SECONDS = 20  # of CPU for one fault, and 15 times that for a slow one
MOST_ACCEPTED = 0.10
WRONG, DOES_NOT_RUN, SURVIVES = "wrong", "does not run", "survives"
BY_DRAWN_INPUTS, EQUAL = "wrong, by drawn inputs", "equal on drawn inputs"
DEFINITIONS = ast.FunctionDef | ast.ClassDef


class Notebook:
    """A notebook's code cells, and which definitions each of them uses."""

    def __init__(self, name: str):
        self.name, self.notebook = name, read(path_of(name))
        self.cells = [c for c in self.notebook.cells if c.cell_type == "code"]
        self.index = {cell.id: number for number, cell in enumerate(self.cells)}
        nodes = [ast.parse(cell.source).body for cell in self.cells]
        self.definitions = {
            n.name: n for body in nodes for n in body if isinstance(n, DEFINITIONS)
        }
        self.uses, self.trains = [], []
        for body in nodes:
            statements = [node for node in body if not isinstance(node, DEFINITIONS)]
            self.uses.append(self.definitions_used(statements))
            run = statements + [self.definitions[name] for name in self.uses[-1]]
            self.trains.append(any(".step(" in ast.unparse(node) for node in run))

    def definitions_used(self, nodes: list[ast.AST]) -> set[str]:
        """Return the functions and classes that code uses, directly or not."""
        found, todo = set(), list(nodes)
        while todo:
            names = {getattr(node, "id", "") for node in ast.walk(todo.pop())}
            new = (names & self.definitions.keys()) - found
            todo += [self.definitions[name] for name in new]
            found |= new
        return found

    def cells_of(self, fault: Fault) -> range:
        """Return the numbers of the cells that a fault runs."""
        first = self.index[fault.cell]
        if fault.caught_by:
            return range(first, self.index[fault.caught_by] + 1)
        after = range(first, len(self.cells))
        use = next((n for n in after if fault.owner in {"", *self.uses[n]}), first)
        ends = (n for n in after if n > use and self.trains[n])
        return range(first, next(ends, len(self.cells)))

    def is_slow(self, fault: Fault) -> bool:
        """Say whether a fault runs a training cell."""
        return any(self.trains[n] for n in self.cells_of(fault))

    def run(self, number: int, namespace: dict, source: str = "") -> str:
        """Run a cell, or another source in its place; return "" or what is wrong."""
        cell, out = self.cells[number], io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(source or cell.source, cell.id, "exec"), namespace)
        except AssertionError:
            return WRONG
        except Exception:
            return DOES_NOT_RUN
        return WRONG if sanitize(out.getvalue()) != sanitize(printed(cell)) else ""

    def try_all(self, faults: list[Fault]) -> list[Fault]:
        """Return the faults with their verdicts; `SystemExit` if the control fails."""
        import torch

        torch.testing.assert_close(0, 0)  # what loads modules, not in every child
        if "-" not in self.name:
            self.held_functions()
        namespace, tried = {"__name__": "__main__"}, []
        last = max((self.index[fault.cell] for fault in faults), default=-1)
        for number, cell in enumerate(self.cells):
            if number > last and self.trains[number]:
                break
            here = [fault for fault in faults if fault.cell == cell.id]
            tried += [self.fork(fault, namespace) for fault in here]
            if problem := self.run(number, namespace):
                raise SystemExit(f"{self.name}: {cell.id}: {problem} without any fault")
        return tried

    def fork(self, fault: Fault, namespace: dict) -> Fault:
        """Return a fault with the verdict that a child process comes to."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            seconds = SECONDS * (15 if self.is_slow(fault) else 1)
            signal.setitimer(signal.ITIMER_PROF, seconds)  # ends the child
            gc.disable()  # it would copy all memory
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
            try:
                os.write(writer, json.dumps(self.verdict(fault, namespace)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with open(reader, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        verdict, where = json.loads(answer or f'["{DOES_NOT_RUN}", "no end"]')
        return replace(fault, verdict=verdict, where=where)

    def verdict(self, fault: Fault, namespace: dict) -> tuple[str, str]:
        """Return what becomes of a fault, and the cell or the check that finds it."""
        for number in self.cells_of(fault):
            source = fault.source if self.cells[number].id == fault.cell else ""
            if problem := self.run(number, namespace, source):
                return problem, self.cells[number].id
        if not self.users_of(fault.owner) & self.held_functions():
            return SURVIVES, ""
        difference = self.difference(fault)
        return (BY_DRAWN_INPUTS, difference) if difference else (EQUAL, "")

    def difference(self, fault: Fault) -> str:
        """Return what drawn inputs find wrong with a mutant of a function, or ""."""
        from tests.checking import first_difference  # when main has set the threads

        self.cells[self.index[fault.cell]].source = fault.source
        lesson = SimpleNamespace(**definitions_of(self.notebook, self.name))
        return first_difference(self.name, lesson, self.users_of(fault.owner))

    def users_of(self, owner: str) -> set[str]:
        """Return a definition and those that use it."""
        nodes = self.definitions.items()
        return {owner} | {n for n, d in nodes if owner in self.definitions_used([d])}

    def held_functions(self) -> set[str]:
        """Return what drawn inputs are there for."""
        from tests.checking import checks_of

        return {name for check in checks_of(self.name) for name in check.functions}


def in_drawn_order(notebook: Notebook, faults: list[Fault]) -> list[Fault]:
    """Return faults in an order that follows from a hash of the notebook's code."""
    code = "\n".join(cell.source for cell in notebook.cells)

    def digest(fault):
        return hashlib.sha256((code + fault.identity).encode()).digest()

    return sorted(faults, key=digest)


def rows_of(text: str) -> list[str]:
    """Return the rows of a table, a line each, or with semicolons between them.

    Lines that begin with spaces belong to the line before.
    """
    rows = re.split(r";?\n|; ", re.sub(r"\n +", " ", text))
    return [row for row in rows if row]


def listed_faults(notebook: Notebook) -> list[Fault]:
    """Return the faults of FAULTS, one a row: cell || old || new || caught by.

    Without the last, the cell itself must catch it; \\n stands for a new line.
    Errors: `SystemExit`, with file and row, where that is stale.
    """
    number, found = notebook.name[:2], []
    for row in rows_of(data_of(number).get("FAULTS", {}).get(notebook.name, "")):
        parts = [part.strip().replace("\\n", "\n") for part in row.split("||")]
        cell, old, new, caught_by = [*parts, parts[0]][:4]
        sources = {c.id: c.source for c in notebook.cells}
        count = sources.get(cell, "").count(old)
        if count != 1 or caught_by not in sources:
            problem = f"no longer fits its cell ({count} times in {cell!r})"
            raise SystemExit(f"lesson_{number}.py, FAULTS: {problem}: {row}")
        found.append(Fault(row, cell, sources[cell].replace(old, new), "", caught_by))
    return found


def problems_of(notebook: Notebook, few: bool) -> list[str]:
    """Try listed faults and mutants, print the score; return what is not as it should.

    few: of listed faults those that are found before training, of mutants some.
    """
    listed, every = listed_faults(notebook), []
    if "-" not in notebook.name:
        every = [m for cell in notebook.cells for m in mutants(cell.id, cell.source)]
        every = in_drawn_order(notebook, every)
    if few:  # what stands after the first training would have to wait for it
        first = [*notebook.trains, True].index(True)
        every = [f for f in every if notebook.index[f.cell] <= first]
        listed = [f for f in listed if max(notebook.cells_of(f)) < first]
    slow = [f for f in every if notebook.is_slow(f)]
    fast = [f for f in every if not notebook.is_slow(f)]
    number = (DRAWN, DRAWN_SLOW) if few else (None, ALL_SLOW)
    chosen = fast[: number[0]] + slow[: number[1]]
    tried = notebook.try_all(listed + chosen)
    problems = [
        f"not found: {fault.identity}: {fault.verdict} {fault.where}"
        for fault in tried
        if fault.caught_by and (fault.verdict, fault.where) != (WRONG, fault.caught_by)
    ]
    print(f"{notebook.name}: {len(listed)} listed faults, {len(problems)} not found")
    if every:
        tried = [fault for fault in tried if not fault.caught_by]
        problems += problems_of_mutants(notebook, tried, few)
    return problems


def problems_of_mutants(notebook, tried, few) -> list[str]:
    """Print the score of a lesson; return which mutants survive that should not.

    ACCEPTED has by reason what may survive: "cell: old -> new", or "cell: old" for any
    change of just this code. TO_CURE has how many others are known to, by cell, the
    slow ones not counted.
    tried: mutants with their verdicts.
    """
    data, verdicts = data_of(notebook.name), Counter(fault.verdict for fault in tried)
    accepted = data.get("ACCEPTED", {}).items()
    reasons = {row: why for why, text in accepted for row in rows_of(text)}

    def row_of(fault):
        old = fault.identity.partition(" -> ")[0]
        return next((row for row in (fault.identity, old) if row in reasons), "")

    survivors = [fault for fault in tried if fault.verdict == SURVIVES]
    used = Counter(reasons[row] for row in map(row_of, survivors) if row)
    open_ = [fault for fault in survivors if not row_of(fault)]
    found = verdicts[WRONG] + verdicts[BY_DRAWN_INPUTS]
    base = max(1, found + len(open_))
    notes = [
        f"{len(tried)} mutants: " + ", ".join(f"{n} {v}" for v, n in verdicts.items()),
        f"score {found / base:.1%}, by the notebook alone {verdicts[WRONG] / base:.1%}",
        *(f"{number} accepted: {reason}" for reason, number in used.items()),
    ]
    to_cure = dict(row.split(": ") for row in rows_of(data.get("TO_CURE", "")))
    if few:
        problems = [f"survives: {f.identity}" for f in open_ if f.cell not in to_cure]
    else:
        notes += [f"{EQUAL}: {f.identity}" for f in tried if f.verdict == EQUAL]
        notes += [f"to cure: {fault.identity}" for fault in open_]
        cells = Counter(f.cell for f in open_ if not notebook.is_slow(f))
        surviving = {cell: str(number) for cell, number in cells.items()}
        differ = sorted(surviving.items() ^ to_cure.items())
        problems = [f"survivors and TO_CURE differ: {row}" for row in differ]
        stale = reasons.keys() - set(map(row_of, survivors))
        problems += [f"accepted, but does not survive: {row}" for row in stale]
        if len(survivors) - len(open_) > MOST_ACCEPTED * (found + len(survivors)):
            problems.append(f"more than {MOST_ACCEPTED:.0%} are accepted")
    print("\n".join(f"{notebook.name}: {note}" for note in notes))
    return problems


def main(arguments: list[str]) -> int:
    """Try the faults of the notebooks named, or of all; 1 if one is not found."""
    if not hasattr(os, "fork"):
        raise SystemExit("faults are planted by forking, which this system cannot do")
    os.environ |= {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    problems = []
    for path in find([word for word in arguments if word != "--drawn"]):
        found = problems_of(Notebook(name_of(path)), "--drawn" in arguments)
        problems += [f"{name_of(path)}: {problem}" for problem in found]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0
