"""Lesson 47: what its checks need to know, and its functions held to PyTorch's."""

# Imports stand here.

# Printed numbers that may differ between processors: the line, and each number's range.
BANDS = {
    "quadrant, ViT with positions: mean test acc": (94, 100, 5.9),
    "quadrant, ViT without positions: mean test acc": (22, 27.9, 4.9),
    "quadrant, CNN: mean test acc": (98, 100, 1.9),
    "glyphs, {ViT|patch sum}: mean test acc": (92, 100, 4.9),
    "glyphs, CNN: mean test acc": (65, 87.9, 99.9),
    "glyphs, CNN, twice the steps: mean test acc": (82, 95.9, 6.9),
    "glyphs, a rule on the sum, nothing learned: test acc": (99, 100, 0.9),
    # data hunger
    "ViT,   25 training images: mean test acc": (26, 44.9, 99.9),
    "ViT,  100 training images: mean test acc": (45, 74.9, 99.9),
    "ViT,  400 training images: mean test acc": (88, 100, 6.9),
    "ViT, 1600 training images: mean test acc": (94, 100, 5.9),
    "CNN,   25 training images: mean test acc": (65, 96.9, 99.9),
    "CNN,  100 training images: mean test acc": (95, 100, 4.9),
    "CNN, { 400|1600} training images: mean test acc": (98, 100, 1.9),
    # exercises from here on, measured on seeds 0 to 5
    "mean over patches, 1600 images, seed 0: test acc": (93, 100),
    "fixed codes, 1600 images, seed 0: test acc": (97, 100),
    "fixed codes,  100 images, seed 0: test acc": (77, 100),
    "learned table,  100 images, seed 0: test acc": (42, 74.9),
    "larger learned table, 100 images, seed 0: test acc": (75, 96.9),
    "fixed sequence codes, 100 images, seed 0: test acc": (60, 92.9),
    "patch sum, trained off the grid: {moved|as drawn}, test acc": (95, 100),
    "read-out {class token|mean},  100 images: mean test acc": (42, 72.9, 99.9),
    "read-out {class token|mean},  200 images: mean test acc": (65, 93.9, 99.9),
    "read-out {class token|mean},  400 images: mean test acc": (88, 100, 99.9),
    "read-out {class token|mean}, 1600 images: mean test acc": (94, 100, 5.9),
    "table learned,  100 images: mean test acc": (45, 72.9, 99.9),
    "table learned, larger,  100 images: mean test acc": (68, 94.9, 99.9),
    "table fixed, sequence,  100 images: mean test acc": (45, 85.9, 99.9),
    "table fixed, grid,  100 images: mean test acc": (77, 100, 99.9),
    "table learned{, larger|},  400 images: mean test acc": (88, 100, 99.9),
    "table fixed, {sequence|grid},  400 images: mean test acc": (88, 100, 99.9),
    "table learned{, larger|}, 1600 images: mean test acc": (94, 100, 5.9),
    "table fixed, {sequence|grid}, 1600 images: mean test acc": (94, 100, 5.9),
    "ViT, trained on the grid, tested on it: mean test acc": (92, 100, 4.9),
    "ViT, trained on the grid, tested off it: mean test acc": (45, 74.9, 99.9),
    "ViT, trained off the grid, tested off it: mean test acc": (86, 96.9, 5.9),
    "ViT, trained off the grid, tested on it: mean test acc": (68, 91.9, 99.9),
    "patch sum, trained {on|off} the grid, tested on it: mean test acc": (95, 100, 2.9),
    "patch sum, trained {on|off} the grid, tested off it: mean test acc": (95, 100, 3),
    "ViT, on the grid, twice the steps: mean test acc": (97, 100, 2.9),
    "ViT, off the grid, twice the steps: mean test acc": (93, 98.9, 3.9),
}

# Numbers of the prose that no output shows, and why they may stand there.
NUMBERS = {
    "four times": "a size: twice as many patches down and across make four times the tokens",
    "0.8": "a size: 0.8 lr, where the warm-up of OneCycleLR leads in the lesson's fit",
}

# Terms that a reader must find in the glossary.
TERMS = [
    "class token",
    "gelu",
    "inductive bias",
    "learned positions",
    "patch",
    "patch embedding",
    "vision transformer",
]

# Faults that are ideas and no slips, each found wrong by the notebook's own comparison.
FAULTS = {}

# Mutants that survive, by the reason why they may.
ACCEPTED = {}

# A right answer to each exercise, written otherwise than ours.
ANSWERS = {}

# Functions held to PyTorch's on drawn inputs stand below.
