# Each target works by itself on a machine with python3 (3.11 or newer) and make: it makes .venv,
# installs what it needs, and the second time starts at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# What the oldest and newest dependencies are tested on.
PYTHON311 ?= python3.11
PYTHON313 ?= python3.13
WHEELS := --only-binary :all: --no-binary pyspark  # nothing is compiled; PySpark has no wheels

.PHONY: demo reproduce test test-kernels test-oldest test-newest lint bench bench-diagnosis bench-scale bench-theory bench-estimation bench-accuracy bench-answers bench-speed bench-table-1 docs clean
.PHONY: docs-smoke docs-look figures package

demo: $(VENV)/.ready
	$(BIN)/unskew demo

# DATA is a folder with the paper's sets; without one they come from OpenML.
reproduce: $(VENV)/.ready-reproduce
	$(BIN)/unskew reproduce $(if $(DATA),--data $(DATA))

test: $(VENV)/.ready-test
	$(BIN)/python -m pytest -n 2

# Under another type of BLAS kernels than the processor's own; KERNEL=Haswell chooses one.
test-kernels: $(VENV)/.ready-test
	@set -e; kernel=$(or $(KERNEL),$$($(BIN)/python tools/other_kernel.py)); test -z "$$kernel" || \
		OPENBLAS_CORETYPE=$$kernel $(BIN)/python -m pytest -n 2 tests/numerics tests/weighters

# With exactly the declared minimum of every dependency.
test-oldest: .venv-oldest/.ready
	.venv-oldest/bin/python -m pytest -n 2

# With the newest of everything on this day, constraints.txt or not.
test-newest:
	$(call new-venv,$(PYTHON313),3.13,.venv-newest,PYTHON313)
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check $(WHEELS) -e '.[test]'
	.venv-newest/bin/python -m pip list --disable-pip-version-check
	.venv-newest/bin/python -m pytest -n 2

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/check_layers.py

bench: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.scale local ratios --only Tree --rows 20000000

bench-diagnosis: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.diagnosis

bench-scale: $(VENV)/.ready-dev
	for part in ratios memory largest; do $(BIN)/python -m benchmarks.scale local $$part; done
	$(BIN)/python -m benchmarks.scale spark

# What people wait for, each job beside its limit or peer in the same run.
bench-speed: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.speed

# Draws of our weighters take a quarter of an hour each, those of the peers more; all can be stopped and resumed.
bench-accuracy: $(VENV)/.ready-dev
	for part in kernel survey; do $(PYTHON) -m venv .venv-$$part && \
		.venv-$$part/bin/python -m pip install --quiet -r benchmarks/accuracy/requirements-$$part.txt; done
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.accuracy run
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.accuracy run --part "some draws" --draws 2
	for part in kernel survey; do OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.accuracy run --part $$part \
		--python .venv-$$part/bin/python --draws 1; done
	$(BIN)/python -m benchmarks.accuracy collect
	$(BIN)/python -m benchmarks.accuracy page

# An hour of two processors; it can be stopped and resumed. DRAWS= and BESIDE= make it shorter.
bench-answers: $(VENV)/.ready-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.answers run --draws $(or $(DRAWS),300) --beside $(or $(BESIDE),60)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.answers doors
	$(BIN)/python -m benchmarks.answers page

# How often intervals hold; it can be stopped and resumed.
bench-estimation: $(VENV)/.ready-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.estimation

bench-theory: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.theory

# Five seeds of Table 1 for docs/table-1.md, one round after the other; OUT keeps them, so that it can be resumed.
bench-table-1: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.table_1 $(if $(DATA),--data $(DATA)) -o $(or $(OUT),unskew-table-1-runs)
	$(BIN)/python -m benchmarks.table_1 $(if $(DATA),--data $(DATA)) -o $(or $(OUT),unskew-table-1-runs) --collect

# The site, from scratch, into site/: its pages, the reference, and the gallery, whose examples are run.
# It works from disk, without a network. Warnings are errors; every link within it is checked, and whether pages
# with figures of benchmarks show the stored results.
docs: $(VENV)/.ready-docs
	rm -rf site docs/_made docs/gallery docs/api/generated docs/api/examples
	$(BIN)/python -m docs.building.check_pages
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs site
	$(BIN)/python -m docs.building.check_site site

# The same without running the gallery.
docs-smoke: $(VENV)/.ready-docs
	$(BIN)/python -m docs.building.check_pages
	UNSKEW_DOCS=smoke $(BIN)/python -m sphinx -b html -W --keep-going -q -d site-smoke/.doctrees docs site-smoke
	$(BIN)/python -m docs.building.check_site site-smoke

# Every page of the site in Chromium, at the width of a desktop and of a phone; PICTURES=folder keeps what it shows.
docs-look: $(VENV)/.ready-test
	$(BIN)/python -m docs.building.look site $(PICTURES)

# The pictures in docs/images, and docs/table-1.md and docs/checked-against.md from their results.
figures: $(VENV)/.ready-dev
	$(BIN)/python -m docs.draw_figures
	$(BIN)/python -m docs.draw_sensitivity
	$(BIN)/python -m docs.draw_report
	$(BIN)/python -m docs.building.chart
	$(BIN)/python -m docs.building.diagrams
	$(BIN)/python -m docs.table_1
	$(BIN)/python -m docs.checked_against

# Wheel and source distribution in dist/, each installed in a fresh environment, in which the demo runs.
package:
	$(PYTHON) tools/check_package.py dist

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest .venv-kernel .venv-survey site site-smoke dist docs/_made

define new-venv
$(1) -c 'import sys; assert sys.version_info[:2] == ($(subst .,$(comma) ,$(2)))' || \
		{ echo "Python $(2) is needed, and '$(1)' is missing or another: set $(4)=..." >&2; exit 1; }
	$(1) -m venv --clear $(3)
endef
comma := ,

.venv-oldest/.ready: pyproject.toml tools/oldest.py
	$(call new-venv,$(PYTHON311),3.11,.venv-oldest,PYTHON311)
	.venv-oldest/bin/python tools/oldest.py test > .venv-oldest/oldest.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check $(WHEELS) \
		-r .venv-oldest/oldest.txt -e .
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "unskew needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.ready-%: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@
