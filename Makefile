# The commands of this project. Windows readers find the same in plain commands in the README.
# PYTHON is any Python 3.11 or newer with venv; TORCH=cpu gets the small build of torch on Linux.
PYTHON ?= python3
TORCH ?=
LESSON ?=
OLD ?=
export TORCH

# One thread a process: more threads than cores make the small models of the lessons slower.
export OMP_NUM_THREADS = 1

BOOK = .venv/book/bin/python
FULL = .venv/full/bin/python

.DEFAULT_GOAL := help
.PHONY: help book pdf archive verify changes preview lab doctor test check faults matrix run long record handout bench links audit pins clean book-environment full-environment

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1|/p' Makefile | awk -F'|' '{ printf "%-15s %s\n", $$1, $$2 }'
	@echo "On Linux, add TORCH=cpu to all but book, preview, archive and clean for the small build of torch."

book: book-environment  ## build the book, strictly, into _build/html
	@$(BOOK) tools/build_book.py

pdf: full-environment  ## build the book with a PDF of each lesson and of the whole
	@$(FULL) tools/make_pdf.py

archive: book-environment  ## the site as one zip, to read from a folder
	@$(BOOK) tools/make_archive.py

verify: book-environment  ## refuse the built site if it lacks a page or a file
	@$(BOOK) tools/check_site.py

changes: book-environment  ## the pages that differ: make changes OLD=folder/of/the/older/site
	@$(BOOK) tools/changed_pages.py "$(OLD)"

preview: book-environment  ## build, serve on this machine only, rebuild on save
	@$(BOOK) tools/preview.py

lab: full-environment  ## open JupyterLab on the lessons
	@$(FULL) tools/lab.py

doctor:  ## print versions, say what is wrong here and how to mend it
	@$(PYTHON) tools/doctor.py

test: full-environment  ## run all there is to check, with the lessons re-executed
	@$(FULL) tools/browser.py
	@echo "Running every test; this takes some minutes ..."
	@$(FULL) -m pytest -n 2 --dist loadgroup -v

check: full-environment  ## the fast part of it: everything but notebooks and browser
	@$(FULL) -m pytest -n 2 --dist loadgroup -q -m "not slow and not browser" tests

faults: full-environment  ## plant every fault, one at a time; each must be rejected
	@echo "Planting every fault; this takes a quarter of an hour ..."
	@$(FULL) tools/plant_faults.py $(LESSON)

run: full-environment  ## execute a lesson and store its outputs: make run LESSON=46
	@$(FULL) tools/run_lessons.py $(LESSON)

matrix:  ## execute and compare on other versions of torch and Python; gigabytes, half an hour
	@$(PYTHON) tools/matrix.py

long: full-environment  ## run the long worked answers, compare with what is recorded
	@$(FULL) tools/long_answers.py $(LESSON)

record: full-environment  ## run the long worked answers and store their results
	@$(FULL) tools/long_answers.py --record $(LESSON)

handout: full-environment  ## copies of the exercises without worked answers, for a class
	@$(FULL) tools/handout.py $(LESSON)

bench: full-environment  ## measure time and memory of builds and lessons, and their growth
	@$(FULL) tools/bench.py

links: book-environment  ## ask every address outside the book whether it still answers
	@$(BOOK) tools/check_links.py

audit: full-environment  ## look the locked packages up among the known weaknesses
	@$(FULL) tools/audit.py

pins:  ## write constraints.txt and the locks again after a change of requirements
	@$(PYTHON) tools/pins.py

clean:  ## remove the environments and all that was built
	rm -rf .venv _build .pytest_cache

book-environment:
	@$(PYTHON) tools/environment.py book

full-environment:
	@$(PYTHON) tools/environment.py full
