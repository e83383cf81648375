"""Lesson 45: what its checks need to know, and its functions held to PyTorch's."""

# Imports stand here.

# Printed numbers that may differ between processors: the line, and each number's range.
BANDS = {
    "attention: mean train acc": (95, 100, 9.9),
    "attention: mean test acc": (96, 100, 9.9),
    # memorised: moves with the processor
    "mean of pairs: mean train acc": (50, 100, 99.9),
    "mean of pairs: mean test acc": (8, 15.9, 9.9),
    "pair network, mean: mean train acc": (50, 100, 99.9),
    "pair network, mean: mean test acc": (7, 15.9, 9.9),
    "attention: re-paired, test acc": (96, 100),
    "mean of outer products, nothing learned: mean test acc": (98, 100, 9.9),
    "16 items: largest weight on the asked pair: mean test acc": (96, 100, 9.9),
    "8 items: mean test acc": (96, 100, 9.9),
    # exercises from here on
    "pair network, 2000 sequences: mean train acc": (98, 100, 1.9),
    "pair network, 2000 sequences: mean test acc": (9, 13.9, 2.9),
    "pair network, 8000 sequences: mean train acc": (50, 67.9, 5.9),
    "pair network, 8000 sequences: mean test acc": (15, 21.9, 2.9),
    "pair network, 32000 sequences: mean train acc": (26, 44.9, 6.9),
    "pair network, 32000 sequences: mean test acc": (20, 34.9, 5.9),
    "attention, 2000 sequences: mean test acc": (96, 100, 1.9),
}

# Numbers of the prose that no output shows, and why they may stand there.
NUMBERS = {}

# Terms that a reader must find in the glossary.
TERMS = [
    "attention",
    "causal mask",
    "cross-attention",
    "key",
    "leak test",
    "padding mask",
    "permutation equivariance",
    "query",
    "scores",
    "self-attention",
    "temperature",
    "value",
]

# Faults that are ideas and no slips, each found wrong by the notebook's own comparison.
FAULTS = {}

# Mutants that survive, by the reason why they may.
ACCEPTED = {}

# A right answer to each exercise, written otherwise than ours.
ANSWERS = {}

# Functions held to PyTorch's on drawn inputs stand below.
