# Thin on purpose: what set-up does is in tools/setup_env.py.
PYTHON ?= python3
ACCELERATOR ?= auto
BIN := .venv/bin
SETUP := $(PYTHON) tools/setup_env.py --accelerator $(ACCELERATOR)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all run-tests run-all-tests lint types bench bench-training clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 22
	@echo "  PYTHON=python3.12 names another Python; ACCELERATOR=cpu or gpu overrules the look for an NVIDIA driver."

demo: ## Ingest a small corpus, serve it, ask three questions; sets up the base install with FAISS and the web interface
	@$(SETUP) demo
	@$(BIN)/vrag demo

setup: ## Set up for development: vLLM, the tools of lint and test, the user interface
	@$(SETUP) test

# A machine that forbids bytecode would have each of some hundred processes compile this package anew.
test test-all: export PYTHONDONTWRITEBYTECODE :=

test: lint ## Set up, lint, check types, run the tests but for those marked exhaustive (a quarter of an hour)
	@$(MAKE) --no-print-directory -j 2 types run-tests

test-all: lint ## The same with every test (half an hour)
	@$(MAKE) --no-print-directory -j 2 types run-all-tests

# Beside mypy, which keeps one core busy for a minute.
run-tests:
	$(BIN)/python -m pytest -n 3 --no-loadscope-reorder -m "not exhaustive"

run-all-tests:
	$(BIN)/python -m pytest -n 3 --no-loadscope-reorder --hypothesis-profile=explore

lint: setup ## ruff: rules and format; import-linter: the directions of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: setup ## mypy, strict
	$(BIN)/mypy

bench: setup ## Retrieval, ingest, search, agents and model serving against their baselines (tens of minutes)
	$(BIN)/python benchmarks/fetch_pdfs.py
	$(BIN)/python benchmarks/retrieval_toc.py
	$(BIN)/python benchmarks/ingest.py
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/agents.py
	$(BIN)/python -m benchmarks.extractive
	$(BIN)/python benchmarks/serve_policy.py
	$(BIN)/python benchmarks/serving.py
	$(BIN)/python -m benchmarks.overload
	$(BIN)/python benchmarks/many_files.py
	$(BIN)/python benchmarks/shard_load.py
	$(BIN)/python benchmarks/ui.py

bench-training: setup ## From random weights to an agent, what a step costs, the study of GGPO (two to three hours)
	$(BIN)/python benchmarks/mosaic_rl.py --out benchmarks/data/mosaic-rl
	$(BIN)/python benchmarks/rl_step.py benchmarks/data/mosaic-rl
	$(BIN)/python benchmarks/ggpo.py --out benchmarks/data/ggpo
	$(BIN)/python benchmarks/visual_retrieval.py --out benchmarks/data/visual-retrieval

clean: ## Remove the environment and every cache and build product
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
