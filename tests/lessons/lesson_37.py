"""Lesson 37: what its checks need to know, and its functions held to PyTorch's."""

# Imports stand here.

# Printed numbers that may differ between processors: the line, and each number's range.
BANDS = {
    # three blocks: every kind solves the task
    "plain, 3 blocks: mean {train|test} acc": (97, 100, 2.9),
    "residual, 3 blocks: mean {train|test} acc": (97, 100, 2.9),
    "residual + layer norm, 3 blocks: mean {train|test} acc": (97, 100, 2.9),
    "batch norm, 3 blocks: mean {train|test} acc": (97, 100, 2.9),
    # the points cannot be told apart: a guess
    "plain, 30 blocks: mean {train|test} acc": (40, 59.9, 9.9),
    "residual, 30 blocks: mean {train|test} acc": (98, 100, 1.9),
    "residual + layer norm, 30 blocks: mean {train|test} acc": (98, 100, 1.9),
    "batch norm, 30 blocks: mean {train|test} acc": (98, 100, 1.9),
    # the cures
    "plain, He's scale, 30 blocks: mean {train|test} acc": (95, 100, 3.9),
    # exercises from here on
    "scale 0, 30 blocks, seed 0: test acc": (98, 100),
    "no blocks at all, seed 0: train acc": (68, 79.9),
    "scale 0, {30|100} blocks: mean test acc": (98, 100, 1.9),
    "residual, 100 blocks: mean test acc": (40, 59.9, 9.9),
    "linear, {no |}shortcut, L = {3|30}: mean train acc": (68, 79.9, 3.9),
}

# Numbers of the prose that no output shows, and why they may stand there.
NUMBERS = {
    "four times": "a size: the third line of the table has weights 4 times as large",
    "1e-8": "a size: the constant in the denominator of Adam",
}

# Terms that a reader must find in the glossary.
TERMS = [
    "batch norm",
    "biased variance",
    "jacobian",
    "layer norm",
    "residual block",
    "running statistics",
    "shortcut",
    "vanishing gradient",
]

# Faults that are ideas and no slips, each found wrong by the notebook's own comparison.
FAULTS = {}

# Mutants that survive, by the reason why they may.
ACCEPTED = {}

# A right answer to each exercise, written otherwise than ours.
ANSWERS = {}

# Functions held to PyTorch's on drawn inputs stand below.
