# Each target works by itself on a machine with python3 (3.11 or newer) and make: it makes .venv,
# installs what it needs, and the second time starts at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# What the oldest and newest dependencies are tested on.
PYTHON311 ?= python3.11
PYTHON313 ?= python3.13
WHEELS := --only-binary :all: --no-binary pyspark  # nothing is compiled; PySpark has no wheels

.PHONY: demo reproduce test test-kernels test-oldest test-newest lint bench bench-calibration bench-diagnosis bench-kill bench-scale bench-kmm bench-ratio bench-theory bench-heckman bench-label-shift docs clean

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

# balance, the peer, gets an environment of its own at the first run; it takes minutes. DATA is a folder
# with the paper's sets, for the comparison of kinds of features, which takes a quarter of an hour.
bench-calibration: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.calibration solve
	$(BIN)/python -m benchmarks.calibration rake --peers .venv-balance
	$(if $(DATA),$(BIN)/python -m benchmarks.calibration features $(DATA))

bench-diagnosis: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.diagnosis

bench-scale: $(VENV)/.ready-dev
	for part in agreement ratios memory largest kill; do $(BIN)/python -m benchmarks.scale local $$part; done
	for part in same ratio cores kill plan; do $(BIN)/python -m benchmarks.scale spark $$part; done

bench-kill: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.kill

# The peers live in an environment of their own, which they share with unskew.
bench-kmm:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet -r benchmarks/kmm/requirements.txt -e .
	.venv-peers/bin/python -m benchmarks.kmm bare
	.venv-peers/bin/python -m benchmarks.kmm peers
	.venv-peers/bin/python -m benchmarks.kmm sizes
	.venv-peers/bin/python -m benchmarks.kmm toy

bench-ratio:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet -r benchmarks/density_ratio/requirements.txt -e .
	.venv-peers/bin/python -m benchmarks.density_ratio toy
	.venv-peers/bin/python -m benchmarks.density_ratio agree
	.venv-peers/bin/python -m benchmarks.density_ratio cost

bench-theory: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.theory validity
	$(BIN)/python -m benchmarks.theory tightness
	$(BIN)/python -m benchmarks.theory leaves
	$(BIN)/python -m benchmarks.theory cost

bench-heckman: $(VENV)/.ready-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.heckman

bench-label-shift: $(VENV)/.ready-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.label_shift

docs: $(VENV)/.ready-dev
	$(BIN)/python -m docs.draw_figures
	$(BIN)/python -m docs.draw_report
	$(BIN)/python -m docs.table_1

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest .venv-peers .venv-balance

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
