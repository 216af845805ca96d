# `make help` lists what there is. CI runs the same names.
include capi/build.env

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV    := $(CURDIR)/.venv
TOOLBIN := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/riverbed/bin
export PATH := $(VENV)/bin:$(TOOLBIN):$(PATH)
export CGO_ENABLED

LIB      := python/riverbed/libriverbed.so
ICEBERG  := python/riverbed/libriverbed_iceberg.so
GO_BUILD  = go build $(GO_BUILD_FLAGS) -buildmode=c-shared \
            -ldflags '$(GO_LDFLAGS) -extldflags=-Wl,--version-script=$(CURDIR)/$(GO_VERSION_SCRIPT)'
# The library of Iceberg metadata is a module of its own (capi/iceberg), whose first build costs minutes. All that is done there has the flags of
# its build, or everything would be compiled twice.
IN_ICEBERG = cd capi/iceberg && GOFLAGS='$(GO_BUILD_FLAGS)'
# Go ends a package's tests after ten minutes unless told not to; a busy machine may take longer.
GO_TEST   = go test -timeout 0
GO_NOTED  = python tools/go_test.py
# Pebble checks itself when the race detector is on, and does not take the empty keys of the suite of stores then: ours are never empty.
RACE      = $$(go list ./incremental/... ./state/... | grep -v /state/pebble$$)
CASE     ?= all
SEED     ?= 1
N        ?= 10000
SUITES   ?= ../shared/cases/peer-suites
SUITE    ?=
SAMPLE   ?= 1

# What each target tests lives in these folders.
PARITY := ./tests/go/parity/...
PROP   := ./tests/go/prop/... ./tests/go/queries/... ./tests/go/mutants/...

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: setup
setup: ## install what is missing: Debian packages, Go, .venv, the library (most targets begin with it)
	@tools/setup.sh

.PHONY: dev
dev: ## rebuild the library in place, seconds after a change of a Go file
	@$(GO_BUILD) -o $(LIB) ./capi
	@rm -f $(LIB:.so=.h)

.PHONY: iceberg
iceberg: $(ICEBERG) ## the library of Iceberg metadata, when its sources have changed (minutes at first)

$(ICEBERG): capi/build.env capi/iceberg/go.mod $(shell find capi/iceberg core/objstore core/errs core/clock connectors/iceberg/meta -name '*.go' ! -name '*_test.go')
	@echo 'building the library of Iceberg metadata' >&2
	@$(IN_ICEBERG) go build -buildmode=c-shared -ldflags '$(GO_LDFLAGS) -extldflags=-Wl,--version-script=$(CURDIR)/$(GO_VERSION_SCRIPT)' -o $(CURDIR)/$@ .
	@rm -f $(ICEBERG:.so=.h)

.PHONY: demo
demo: setup ## one SQL text over Parquet and over Kafka, the same rows (KAFKA_BROKERS=host:port for a real broker)
	@tools/demo.sh

.PHONY: test
test: setup iceberg ## all tests but the long suites
	@rm -rf build/skips && mkdir -p build/skips
	$(GO_NOTED) go $$(go list ./... | grep -vE '^$(GO_MODULE)/(incremental|state)(/|$$)') ./state/pebble
	$(GO_NOTED) go-race -race $(RACE)
	GOFLAGS='$(GO_BUILD_FLAGS)' $(GO_NOTED) go-iceberg -C capi/iceberg -buildmode=pie ./...
	pytest -rs --junitxml build/skips/pytest.xml tests/python
	python tools/check_skips.py

.PHONY: test-batch
test-batch: setup ## Go tests of the shared core and the batch engine
	$(GO_TEST) . ./core/... ./connectors/...

.PHONY: test-incr
test-incr: setup ## Go tests of the incremental engine and its state, with the race detector
	$(GO_TEST) -race $(RACE)

.PHONY: test-iceberg
test-iceberg: setup iceberg ## the library of Iceberg metadata, and who loads it
	$(IN_ICEBERG) $(GO_TEST) -buildmode=pie ./... # a shared library is of position-independent code; tests of other code would compile all of it again
	$(GO_TEST) ./capi/iceload ./connectors/iceberg

.PHONY: test-rocksdb
test-rocksdb: setup ## the store of builds with the tag rocksdb (fetches its library)
	eval "$$(tools/rocksdb.sh)" && $(GO_TEST) -tags "$$ROCKSDB_TAGS" ./state/...

.PHONY: test-prop
test-prop: setup ## N random cases per operator and N random queries, compared after every step; deliberate faults (N=10000 SEED=1)
	RIVERBED_PROP_CASES=$(N) RIVERBED_QUERIES=$(N) RIVERBED_MUTANTS=1 RIVERBED_SEED=$(SEED) $(GO_TEST) -count=1 $(PROP)

.PHONY: parity
parity: setup ## every file of tests/sql as batch, row by row, at random cuttings, on 4 workers, with restarts
	RIVERBED_PARITY=full RIVERBED_SEED=$(SEED) $(GO_TEST) -count=1 $(PARITY)

.PHONY: test-golden
test-golden: setup ## the same bits on every build: amd64 v1 and v3, without assembly, arm64 (emulated)
	@tools/golden.sh

.PHONY: test-eo
test-eo: setup ## exactly once: KILLS=100 SIGKILLs a path in every phase of an epoch, its services killed too (SINK_PATH="kafka to kafka"; "steady" with DURATION=1h)
	@cd tests/go/eo && RIVERBED_EO_KILLS=$(or $(KILLS),100) RIVERBED_EO_DURATION=$(or $(DURATION),2m) RIVERBED_EO_JOURNAL=$(CURDIR)/build/eo \
	  SINK_PATH="$(SINK_PATH)" go test -timeout 0 -count 1 -v -run 'TestKills|TestSteady' .

.PHONY: sim
sim: setup ## pipelines in a simulated world that fails, N histories from SEED on, each a function of its seed (SEED=42 N=10000)
	RIVERBED_SEED=$(SEED) RIVERBED_SIM_SEEDS=$(N) $(GO_TEST) -count=1 -v -run 'TestHistories|TestCrash|TestPowerLoss' ./tests/go/sim

.PHONY: fuzz
fuzz: setup ## every Go fuzz target for FUZZTIME each (FUZZTIME=30s)
	@tools/fuzz.sh $(or $(FUZZTIME),30s)

.PHONY: bench
bench: setup ## benchmarks beside their peers (CASE=tpch, nexmark, nexmark/q5, groupby, …; bench/run.py --help lists them)
	@python tools/requirements.py bench | uv pip install -q --python $(VENV)/bin/python -r -
	python bench/run.py $(CASE) $(OPTIONS)

.PHONY: bench-compare
bench-compare: setup ## a commit against the tree as it is (BASE=commit CASE=tpch), or two results of make bench (OLD=file NEW=file)
	python bench/compare.py $(if $(BASE),--base $(BASE) --case $(CASE) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(OPTIONS),--options '$(OPTIONS)'),$(OLD) $(NEW))

.PHONY: lint
lint: setup $(TOOLBIN)/golangci-lint-$(GOLANGCI_VERSION) $(TOOLBIN)/staticcheck-$(STATICCHECK_VERSION) ## gofmt, go vet, staticcheck, golangci-lint, ruff, mypy --strict, stubtest, rules of the source tree
	@tools/lint.sh

$(TOOLBIN)/golangci-lint-$(GOLANGCI_VERSION): | setup
	@tools/go_tool.sh github.com/golangci/golangci-lint/v2/cmd/golangci-lint $(GOLANGCI_VERSION) $(TOOLBIN)

$(TOOLBIN)/staticcheck-$(STATICCHECK_VERSION): | setup
	@tools/go_tool.sh honnef.co/go/tools/cmd/staticcheck $(STATICCHECK_VERSION) $(TOOLBIN)

.PHONY: coverage
coverage: setup ## test coverage of the Go code, by package, in coverage.out
	@mkdir -p build
	$(GO_TEST) -coverprofile coverage.out -coverpkg ./... ./... | tee build/coverage.txt
	@python tools/coverage.py coverage.out --least 80 incremental checkpoint
	go tool cover -func coverage.out | tail -1

.PHONY: generate
generate: setup ## generated files: docs/sql-reference.md, docs/operator-semantics.md, docs/connectors
	go generate ./...

.PHONY: docs
docs: generate ## generate, then run the examples that stand in docs, README and docstrings
	pytest -q tests/python/test_doctest.py tests/python/test_readme.py

.PHONY: wheel
wheel: setup ## a repaired manylinux wheel in dist/, tested in a fresh environment without Go
	@tools/wheel.sh

.PHONY: peer-suites
peer-suites: setup ## test data of similar systems, which is no part of the project (SUITES=folder SUITE=duckdb SAMPLE=10)
	@tools/peer_suites.sh '$(SUITES)' '$(SUITE)' '$(SAMPLE)'
