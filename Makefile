# What a fresh machine with Python 3.11, make and git needs: `make setup`, `make demo` and `make test`.

PYTHON ?= python3
KIEBITZ = .venv/bin/kiebitz
ROUND = captures/maexchen-head-tiny.pcap
ISLAND = captures/catan-niedlichepixel-game2-3p.pcap.gz
FLAWED = captures/schafkopf-1.3-badcard.pcap
DEMO_DB = .demo/game.db
# Else each of thousands of commands would compile its modules anew, which takes three times as long as its start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test lint types tests test-proxy test-dissectors test-storage test-kiebitz test-cli test-security test-system test-all test-oldest test-newest test-compiled soak fuzz bench docs docs-serve site man clean

# The command and all that its tests need, in `.venv`.
setup: .venv/installed

demo: .venv/core-installed
	@rm -rf .demo && mkdir -p .demo
	@printf '\n-- A recorded round goes into a database --\n'
	$(KIEBITZ) import $(ROUND) -w $(DEMO_DB)
	@printf '\n-- Its timeline --\n'
	$(KIEBITZ) events $(DEMO_DB)
	@printf '\n-- The table at one moment --\n'
	$(KIEBITZ) state $(DEMO_DB) --at 1.386s
	@printf '\n-- The round again, at recorded speed; without the pipe one can move in it --\n'
	$(KIEBITZ) replay $(DEMO_DB) --game 1 | cat
	@printf '\n-- What if that announcement had been another one; status 3 says that something differs --\n'
	$(KIEBITZ) whatif $(DEMO_DB) --edit '#33 dice=2,1' || test $$? = 3
	@printf '\n-- A Catan game at one moment, put together from three conversations --\n'
	$(KIEBITZ) state $(ISLAND) --at 60s
	@printf '\n-- What is wrong in another game, and who is to blame; status 3 says that something is --\n'
	$(KIEBITZ) check $(FLAWED) -Y 'diag.severity == "error"' || test $$? = 3

# In three processes, one more than a small machine has cores: many tests only wait. They read no terminal.
PYTEST = .venv/bin/python -m pytest -n 3 --dist worksteal -m 'not soak'

# All that must pass, in minutes: of what is repeated only a few. The types are checked beside the tests, many of which
# only wait. The last line names the parts that failed.
test: .venv/installed
	@rm -f .venv/passed-*
	@$(MAKE) --no-print-directory --keep-going --jobs=2 $(PARTS); status=$$?; failed=; \
	for part in $(PARTS); do \
		[ -e .venv/passed-$$part ] || failed="$$failed$${failed:+, }$$part (make $$part)"; \
	done; \
	printf '\nmake test: %s\n' "$${failed:+failed: }$${failed:-$(PARTS) passed}"; exit $$status

PARTS = lint types tests

lint: .venv/installed
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	@touch .venv/passed-$@

types: .venv/installed
	.venv/bin/mypy
	@touch .venv/passed-$@

tests: .venv/compiled
	$(PYTEST) < /dev/null
	@touch .venv/passed-$@

# The first time, one process compiles the tests, which else each of them would do; meanwhile the types are checked.
.venv/compiled: .venv/installed
	-.venv/bin/python -m pytest --collect-only --quiet > /dev/null < /dev/null
	@touch $@

# The tests of one room, as in `make test-proxy`.
test-proxy test-dissectors test-storage test-kiebitz test-cli test-security test-system: .venv/installed
	$(PYTEST) tests/$(@:test-%=%) < /dev/null

# The tests at full strength.
test-all: .venv/installed
	$(PYTEST) --full < /dev/null

# Whether anything grows under ten million messages or 100,000 clients, and what 200 kills lose; an hour.
soak: .venv/installed
	.venv/bin/pytest -m soak -s tests/system/test_soak.py tests/kiebitz/test_killed_together.py

# All figures beside their peers' (tshark, socat, mitmdump), in one run; twenty-five minutes. Writes RESULTS.md.
bench: .venv/installed
	.venv/bin/python tests/benchmarks/bench.py

# The fuzzing campaigns of the stated size; hours.
fuzz: .venv/installed
	.venv/bin/pytest -m soak tests/security/test_fuzzing.py

# The tests with the lowest versions that pyproject.toml allows.
test-oldest:
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet uv
	.venv-oldest/bin/uv pip install --quiet --python .venv-oldest/bin/python --resolution lowest-direct \
		--editable '.[test]'
	$(PYTEST:.venv/%=.venv-oldest/%) < /dev/null

# The tests of what is compiled, on a compiled wheel in an environment of its own; it takes ten minutes to build.
test-compiled:
	rm -rf .compiled
	mkdir .compiled
	for name in captures cli dissectors docs proxy pyproject.toml storage tests; do ln -s ../$$name .compiled; done
	$(PYTHON) -m venv .compiled/venv
	KIEBITZ_COMPILE=1 .compiled/venv/bin/python -m pip install --quiet '.[test]'
	cd .compiled && venv/bin/pytest -n 3 --dist worksteal -m 'not soak' $(OF_COMPILED) < /dev/null

OF_COMPILED = tests/dissectors tests/proxy tests/storage tests/kiebitz/test_protocol_files_live.py

# Types, and the tests of one minute about what other packages offer, with the newest versions that pyproject.toml
# allows: for a Python other than the one of `make test`, as in `make test-newest PYTHON=python3.13`.
test-newest:
	$(PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip install --quiet uv
	.venv-newest/bin/uv pip install --quiet --python .venv-newest/bin/python --editable '.[test]' \
		|| .venv-newest/bin/python -m pip install --quiet --editable '.[test]'
	.venv-newest/bin/mypy --python-version $$(.venv-newest/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	$(PYTEST:.venv/%=.venv-newest/%) $(OF_PACKAGES) < /dev/null

# Tests that run much of other packages: mitmproxy, scapy, click, Textual, Starlette on uvicorn.
OF_PACKAGES = tests/proxy tests/kiebitz/test_alteration_modes.py tests/kiebitz/test_websocket_live.py tests/cli/test_export.py \
	tests/cli/test_mitmproxy_*.py tests/cli/test_completion.py tests/cli/test_help.py tests/cli/tui tests/cli/web

# The documentation as a site, in site/. It fails over a link that leads nowhere, and over a page that would ask
# another machine for anything.
docs: .venv/docs-installed
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

# The site at http://127.0.0.1:8000, built again whenever a page changes; search works there.
docs-serve: .venv/docs-installed
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs serve

# Kiebitz as a static site that runs in the browser, in public/, with recorded games as examples.
site: .venv/core-installed
	rm -rf public
	$(KIEBITZ) export --site public

# A manual page for each command, in man/.
man: .venv/docs-installed
	.venv/bin/python docs/man_pages.py man

.venv/docs-installed: .venv/installed
	$(call install,'.[docs]')
	@touch $@

# Install the project with extras. uv takes a third of pip's time; pip also serves machines that reach their package
# index by pip's configuration only. Nothing is compiled before it is imported: most of it never is.
install = .venv/bin/uv pip install --quiet --python .venv/bin/python --editable $(1) \
	|| .venv/bin/python -m pip install --quiet --no-compile --editable $(1)

# The command alone: `make demo` needs no extra.
.venv/core-installed: pyproject.toml
	$(PYTHON) -m venv .venv
	-.venv/bin/python -m pip install --quiet uv
	$(call install,.)
	@touch $@

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	-.venv/bin/python -m pip install --quiet uv
	$(call install,'.[test]')
	@touch .venv/core-installed $@

clean:
	rm -rf .venv .venv-oldest .venv-newest .compiled .demo site public build dist man *.egg-info
