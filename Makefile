# The commands of this project; the README has them without make, for Windows.
# PYTHON makes the environments; TORCH=cpu takes the small build of torch on Linux.
PYTHON ?= python3
$(if $(filter-out cpu,$(TORCH)),$(error TORCH=$(TORCH) is not known; say TORCH=cpu, or leave it out))
# One thread a process: more threads than cores make the small models of the lessons slower.
export OMP_NUM_THREADS = 1
# These would have Python and pip work outside the environments.
unexport PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX

# An environment is whole when its stamp is there, which is written last and names its Python.
BOOK := .venv/book/made-by-$(notdir $(PYTHON))
FULL := .venv/full/made-by-$(notdir $(PYTHON))
IN_BOOK := .venv/book/bin/python -m
IN_FULL := .venv/full/bin/python -m
PYTEST := $(IN_FULL) pytest -n 2 --dist loadgroup $(if $(LESSON),--lesson $(LESSON))

.PHONY: help book test deep run record new preview pdf handout lock clean
help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1|/p' Makefile | awk -F'|' '{ printf "%-15s %s\n", $$1, $$2 }'
book: $(BOOK)  ## build the book, strictly, into _build/html; needs no torch
	@$(IN_BOOK) tools book
test: $(FULL)  ## check all that takes minutes; one lesson: make test LESSON=46
	@$(IN_FULL) ruff check && $(IN_FULL) ruff format --check
	@$(PYTEST)
deep: $(FULL)  ## check the rest, which takes half an hour
	@$(PYTEST) tests/deep
run:  ## execute a lesson and its exercises, and store the outputs: make run LESSON=46
record:  ## run the worked answers that take minutes, and store their results
new:  ## write the files of a new lesson: make new LESSON=48
pdf:  ## build the book with a PDF of each lesson and of the whole
handout:  ## copies of the exercises without worked answers, for a class
run record new pdf handout: $(FULL)
	@$(IN_FULL) tools $@ $(LESSON)
preview: $(BOOK)  ## serve the book on this machine, and build again on every save
	@.venv/book/bin/jupyter-book config sphinx .
	@$(IN_BOOK) sphinx_autobuild . _build/preview
lock:  ## write locked.txt again, with the newest versions that the requirements allow
	@$(PYTHON) -m venv --clear .venv/lock && .venv/lock/bin/python -m pip install -qq uv==0.13.9
	@$(COMPILE) requirements.txt > .venv/lock/full.txt
	@$(COMPILE) requirements-book.txt -c .venv/lock/full.txt > .venv/lock/book.txt
	@cd .venv/lock && (echo "# By make lock. The book needs:"; cat book.txt; echo "$(BEYOND)"; cat full.txt) \
	| awk '/^[a-z]/ { kept = !seen[$$0]++ && !/^($(UNLOCKED))/ } /^#/ { kept = 1 } kept' > ../../locked.txt
clean:  ## remove the environments and all that was built
	rm -rf .venv _build .pytest_cache .ruff_cache .hypothesis conf.py

COMPILE = .venv/lock/bin/python -m uv pip compile -q --universal --python-version 3.11.0 \
	--generate-hashes --no-annotate --no-header
BEYOND = \# The lessons and their tests need beyond it:
# Which build of torch fits depends on the machine; of KaTeX's package the Django is not needed.
UNLOCKED = torch|triton|nvidia-|cuda-|django[-=]|asgiref|sqlparse
PYTHONS = Python 3.11 to 3.14 will do (say PYTHON=python3.12); torch has nothing for 3.15 or Intel Macs
define EMPTY_ENVIRONMENT
@$(PYTHON) -c 'import sys; (3, 11) <= sys.version_info[:2] <= (3, 14) or sys.exit("error: $(PYTHONS)")'
@echo "Making $(@D); this takes a minute or more. $(PYTHONS)."
@rm -rf $(@D) && $(PYTHON) -m venv $(@D)
endef
PIP = $(@D)/bin/python -m pip install -qq
DIFFER = { echo "error: requirements and locked.txt differ; run make lock" >&2; exit 1; }
$(BOOK): requirements-book.txt locked.txt
	$(EMPTY_ENVIRONMENT)
	@sed '/^$(BEYOND)/,$$d' locked.txt > $(@D)/locked.txt
	@$(PIP) --no-deps --require-hashes -r $(@D)/locked.txt
	@$(PIP) --no-deps --no-index -r requirements-book.txt || $(DIFFER)
	@touch $@
$(FULL): requirements.txt requirements-book.txt binder/requirements.txt locked.txt
	$(EMPTY_ENVIRONMENT)
	@$(PIP) --no-deps --require-hashes -r locked.txt
	@$(PIP) $(if $(TORCH),-r binder/requirements.txt,$$(grep ^torch== requirements.txt))
	@$(PIP) --no-deps --no-index -r requirements.txt || $(DIFFER)
	@touch $@
