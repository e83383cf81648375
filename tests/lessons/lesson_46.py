"""Lesson 46: what its checks need to know, and its functions held to PyTorch's."""

# Imports stand here.

# Printed numbers that may differ between processors: the line, and each number's range.
BANDS = {}

# Numbers of the prose that no output shows, and why they may stand there.
NUMBERS = {}

# Terms that a reader must find in the glossary.
TERMS = []

# Faults that are ideas and no slips, each found wrong by the notebook's own comparison.
FAULTS = {}

# Mutants that survive, by the reason why they may.
ACCEPTED = {}

# A right answer to each exercise, written otherwise than ours.
ANSWERS = {}

# Functions held to PyTorch's on drawn inputs stand below.
