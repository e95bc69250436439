# SPDX-License-Identifier: Apache-2.0
# The commands of everyday work. `make help` lists them; each installs what it needs.
SHELL := /bin/sh
.DEFAULT_GOAL := build

# The engine's files take up to 2 GB each to compile.
MEMORY_JOBS := $(shell awk '/^MemAvailable/ { n = int($$2 / 2000000); print (n < 1) ? 1 : n }' /proc/meminfo)
CORES := $(shell nproc)
JOBS ?= $(shell [ $(CORES) -lt $(MEMORY_JOBS) ] && echo $(CORES) || echo $(MEMORY_JOBS))
CMAKE_ARGS ?= $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
# Seconds that each fuzzing harness runs.
FUZZ_SECONDS ?= 300
CPP_FILES = git ls-files '*.h' '*.cpp'

.PHONY: build demo test fast bench conformance format lint tidy asan fuzz venv clean help
.PHONY: wheel deb docs bare configure deps deps-test deps-develop all-release

configure: deps
	cmake --preset release $(CMAKE_ARGS)

build: configure  ## build the program: build/release/quench
	cmake --build --preset release -j $(JOBS) --target quench_programs

demo: build  ## quantise a small network, and print accuracy, size and time
	build/release/quench demo --model examples/data/fashion.onnx \
	  --data examples/data/fashion-test-images-idx3-ubyte.gz --mean 72.9 --std 90 --int8 build/demo \
	  --report build/demo/report.html

all-release: deps-test
	cmake --preset release $(CMAKE_ARGS)
	cmake --build --preset release -j $(JOBS)

test: all-release venv  ## build and run every test
	ctest --preset release -j $(JOBS)

fast: all-release  ## build and run the tests that take less than 2 minutes together
	ctest --preset release -j $(JOBS) -L fast

conformance: all-release  ## run the test cases of the ONNX project
	build/release/quench_conformance

bench: all-release venv  ## time ours beside ONNX Runtime
	bench/run.sh

# Debian's Python, and what it has of setuptools: nothing is fetched.
wheel: configure deps-test  ## build the Python package: build/wheel/quench-*.whl
	cmake --build --preset release -j $(JOBS) --target quench_wheel
	QUENCH_BUILD_DIR=build/release QUENCH_JOBS=$(JOBS) /usr/bin/python3 -m pip wheel . --no-deps \
	  --no-build-isolation --wheel-dir build/wheel

deb: build  ## build Debian packages: build/release/deb/*.deb
	cmake --build --preset release -j $(JOBS) --target quench_python quench_pages
	cd build/release && cpack -G DEB

docs: build deps-test  ## make the references of C++ and Python: build/docs
	cmake --build --preset release -j $(JOBS) --target quench_python
	scripts/make_docs.sh build/release

format: deps-test  ## format every C++ file
	$(CPP_FILES) | xargs clang-format -i

lint: all-release deps-develop  ## check format, text, sizes and layers, then run clang-tidy
	ctest --preset release -L fast -R '^check_'
	scripts/tidy.py build/release -j $(JOBS)

tidy: all-release deps-develop  ## run clang-tidy over the tests and benchmarks too
	scripts/tidy.py build/release -j $(JOBS) --all

# Looking for leaks crashes on libtorch's threads; the fuzzing harnesses, without it, do look.
# The consumer of install_package is built without sanitizers, which cannot join a program late.
asan: deps-test  ## run the tests under AddressSanitizer and UBSan
	cmake --preset asan $(CMAKE_ARGS)
	cmake --build --preset asan -j $(JOBS)
	ASAN_OPTIONS=detect_leaks=0 ctest --preset asan -j $(JOBS) -LE 'roundtrip|conformance' \
	  -E '^install_package$$'

fuzz: deps-test deps-develop  ## run each fuzzing harness for FUZZ_SECONDS seconds
	cmake --preset fuzz $(CMAKE_ARGS)
	cmake --build --preset fuzz -j $(JOBS) --target quench_fuzzers
	scripts/fuzz.sh build/fuzz $(FUZZ_SECONDS)

bare: deps-test  ## run demo and test on a bare Debian 12 (needs root), as for a new user
	scripts/bare.sh sh -c 'make demo && make test'
	tests/install/first_model.sh .

deps:
	@scripts/install_deps.sh build

deps-test:
	@scripts/install_deps.sh build test

deps-develop:
	@scripts/install_deps.sh build develop

venv:  ## make .venv with ONNX Runtime, Paddle and LiteRT, which check our output
	@scripts/make_venv.sh

clean:  ## remove everything that was built
	rm -rf build .venv

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile
