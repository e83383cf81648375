"""Lesson 46: what its checks need to know, and its functions held to PyTorch's."""

# Imports stand here.

# Printed numbers that may differ between processors: the line, and each number's range.
BANDS = {
    # a coin flip
    "without positional encoding: mean test acc": (45, 54.9, 3.9),
    "with positional encoding:    mean test acc": (95, 100, 2.9),
    # memorised noise: moves with the processor
    "without positional encoding: mean train acc": (60, 100, 99.9),
    "with positional encoding:    mean train acc": (98, 100, 1.9),
    "with positions: test acc, mirror images included": (95, 100),
    # attention is not needed, positions are
    "no attention, with positions: mean test acc": (93, 100, 3.9),
    "causal, no positional encoding: mean test acc": (95, 100, 3.9),
    # exercises from here on
    "A and B at most 3 apart: test acc": (63, 87.9),
    "A and B further apart:   test acc": (95, 100),
    "T = 32, 100 sequences: mean test acc": (88, 94.9, 3.9),
    "T = 32, 400 sequences: mean test acc": (92, 97.9, 3.9),
    "T = 32, 2000 sequences: mean test acc": (95, 99.9, 2.9),
    "T = 32, {400|100|2000} sequences, at most 3 apart: mean test acc": (62, 89.9, 6.9),
    "T = 32, new sequences at every step: mean test acc": (97, 100, 2.9),
    "lr 0.01, pre-norm: # of 6 seeds solve it": (5, 6),
    "lr 0.01, post-norm, warm-up of 50 steps: # of 6 seeds solve it": (3, 6),
}

# Numbers of the prose that no output shows, and why they may stand there.
NUMBERS = {
    "1e-5": "the limit in float32, asserted by compare",
    "1e-12": "the limit in float64, asserted by compare",
    "95 %": "a threshold, asserted in the cell that prints the accuracies",
}

# Terms that a reader must find in the glossary.
TERMS = [
    "decoder",
    "encoder",
    "encoder block",
    "feed-forward network",
    "head",
    "multi-head attention",
    "positional encoding",
    "post-norm",
    "pre-norm",
]

# Faults that are ideas and no slips, each found wrong by the notebook's own comparison.
FAULTS = {}

# Mutants that survive, by the reason why they may.
ACCEPTED = {}

# A right answer to each exercise, written otherwise than ours.
ANSWERS = {}

# Functions held to PyTorch's on drawn inputs stand below.
