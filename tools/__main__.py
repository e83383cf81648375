"""Run one of the project's commands: `python -m tools VERB [argument ...]`."""

import importlib
import sys

# Each verb is the function `main(arguments)` of a module, which returns an exit code.
VERBS = {
    "book": "build",
    "pdf": "pdf",
    "run": "execute",
    "record": "record",
    "new": "new",
    "handout": "handout",
    "faults": "faults",
}


def main() -> int:
    """Call the verb; 2 where there is none of that name."""
    verb, arguments = sys.argv[1:2], sys.argv[2:]
    if not verb or verb[0] not in VERBS:
        print(f"usage: python -m tools {{{','.join(VERBS)}}} ...", file=sys.stderr)
        return 2
    return importlib.import_module(f"tools.{VERBS[verb[0]]}").main(arguments)


if __name__ == "__main__":
    sys.exit(main())
