"""What the checks need to know of a lesson stands in lesson_NN.py, beside its parity.

BANDS     printed numbers that may differ between processors, each with its range
NUMBERS   numbers of the prose that no output shows, and why they may stand there
FAULTS    faults that are ideas and no slips, which the notebook itself must find wrong
ACCEPTED  mutants that may survive, by the reason
TO_CURE   how many other mutants survive in a cell, until the lesson is rebuilt
ANSWERS   a right answer to each exercise, written otherwise than ours
EXEMPT    by reason, functions that no check made by @equal holds
"""
