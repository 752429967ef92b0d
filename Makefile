# make run     the dashboard on http://localhost:8501
# make test    every check and every test
# PYTHON names the interpreter that builds .venv (3.11 or newer).

PYTHON ?= python3
PORT   ?= 8501
VENV   := .venv
PY     := $(VENV)/bin/python
RUN    := $(VENV)/.installed-run
DEV    := $(VENV)/.installed-dev
PIP    := $(PY) -m pip install --quiet --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.PHONY: calibrate help run test lint format bench docs simulated screenshots clean

help:
	@echo "make run          serve the dashboard on http://localhost:$(PORT)"
	@echo "make test         every check and every test (browser tests need Chromium)"
	@echo "make lint         style, types and layers"
	@echo "make format       rewrite the code in the house style"
	@echo "make bench        benchmarks alone, with more rounds and their table"
	@echo "make docs         regenerate the documents that come from the code"
	@echo "make simulated    simulate the load tests behind the measurements (some minutes)"
	@echo "make screenshots  retake the pictures in docs/img (needs Chromium)"
	@echo "make clean        remove .venv and all caches"

# --- environment: built once; afterwards nothing here needs the network ----------------------

$(PY):
	@$(PYTHON) .ci/check_python.py
	@echo "Building $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(RUN): requirements.txt | $(PY)
	@echo "Installing what the dashboard needs (first time only, about a minute) ..."
	@$(PIP) -r requirements.txt
	@touch $@

$(DEV): requirements.txt requirements-dev.txt | $(PY)
	@echo "Installing what the tests need (first time only, about a minute) ..."
	@$(PIP) -r requirements-dev.txt
	@touch $@ $(RUN)

# --- targets ----------------------------------------------------------------------------------

run: $(RUN)
	@$(PY) -m streamlit run app.py --server.headless true --server.port $(PORT) --browser.gatherUsageStats false

# Both halves always run, so that one style fault does not hide a failing test.
# pytest comes last: its closing line is the end of a passing run.
test: $(DEV)
	@lint=0; $(MAKE) --no-print-directory lint || lint=1; \
	$(PY) .ci/tests.py $(PYTEST_ARGS); tests=$$?; \
	if [ $$lint -ne 0 ]; then echo "make lint failed: see above the test report." >&2; fi; \
	exit $$((lint || tests))

lint: $(DEV)
	@$(PY) .ci/lint.py

format: $(DEV)
	@$(PY) -m ruff check --fix-only --quiet .
	@$(PY) -m ruff format --quiet .

bench: $(DEV)
	@$(PY) -m pytest tests/bench --benchmark-min-rounds=10 --benchmark-max-time=2 --benchmark-columns=min,median,iqr,rounds $(PYTEST_ARGS)

# FORMULAS, NOMENCLATURE and the bands in LIMITS come from the code; VALIDATION, presets/measurements/predicted.csv, the
# snapshot of predictions and its digest in CHANGELOG from the accuracy tests; SOURCES from the golden cases.
docs: $(DEV)
	@$(PY) .ci/docs.py
	@$(PY) -m pytest tests/accuracy tests/golden/test_sources_document.py --update-docs --quiet || [ $$? -eq 5 ]

# Serving constants, then what points of one's own are worth under them, then the documents that quote both. Kernel laws
# and other engines need tables that may not be shipped: `$(PY) -m planner calibrate --kernels DIR`, `--other-engines CSV`.
SERVED := presets/measurements/serving.csv
calibrate: $(DEV)
	@$(PY) -m planner calibrate --serving $(SERVED)
	@$(PY) -m planner calibrate --given $(SERVED)
	@$(MAKE) docs

# What the load tests of the shipped measurements come to when simulated; docs/VALIDATION.md quotes it.
simulated: $(DEV)
	@$(PY) -m planner validate $(SERVED) --simulate --out presets/measurements/simulated.csv
	@$(MAKE) docs

screenshots: $(DEV)
	@$(PY) .ci/screenshots.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
