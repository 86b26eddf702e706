# SPDX-License-Identifier: Apache-2.0
#
# The targets people type. Meson does the work (meson.build); this adds the set-up of the machine.
#
#   make            build into build/               make test       every test; needs no GPU
#   make demo       six programs, one device        make test-gpu   API, recovery, clusters: on a GPU
#   make install    PREFIX=/usr/local DESTDIR=      make bench      figures, on a real GPU
#   make uninstall  what install has put there      make deb        Debian packages, in build-deb/
#   make test-fleet packages in clean systems       make clean      what builds have made
#   make experiments  n-body, LeNet and stopped programs, natively, under MPS and through Funnel
#   make test-runtimes  the API programs, built with each CUDA toolkit that is found
#   make asan tsan  the tests under sanitizers      make format     apply .clang-format
#   make soak       clients come and go for SECONDS (600), and nothing that they had may stay
#   make races      chaos and hostile sequences over the pool of workers, under ThreadSanitizer
#
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
MESON = "$$(tools/setup --meson)"

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@tools/setup
	@$(MESON) setup $(BUILD) --prefix=$(PREFIX)

test: all
	@tools/test $(BUILD)

test-gpu: all
	@tests/api/run.py --build $(BUILD) --device cuda --clients 1,4,8
	@python3 -B tests/recovery/test_recovery.py $(BUILD) --device cuda
	@FUNNEL_TEST_DEVICE=cuda python3 -B tests/limits/test_limits.py $(BUILD) Clusters

# Packages in clean systems; needs root, mmdebstrap and a mirror of Debian. SCENES=packages runs one.
test-fleet: all
	@tests/fleet/run.py $(SCENES)

# TOOLKITS="FOLDER ..." names further toolkits; DEVICE=cuda runs the programs on a GPU.
test-runtimes: all
	@tests/api/runtimes.py --build $(BUILD) --device $(or $(DEVICE),soft) $(TOOLKITS:%=--toolkit %)

demo: all
	@examples/demo --build $(BUILD)

bench: all
	@bench/run.py --build $(BUILD)

experiments: all
	@bench/experiments.py --build $(BUILD)

# The prefix may differ from the one that the build was configured with.
install: all
	@$(MESON) setup --reconfigure $(BUILD) --prefix=$(PREFIX) >/dev/null
	@DESTDIR=$(DESTDIR) $(MESON) install -C $(BUILD) --no-rebuild --quiet
	@echo "Installed in $(DESTDIR)$(PREFIX)"

uninstall:
	@ninja -C $(BUILD) uninstall

deb:
	@packaging/make_deb build-deb

# Sanitizers need their runtime in the program; our library is loaded into programs that lack it, so
# these builds run the unit and process tests, and hold only what those need. BUILD_ONLY=1 builds that.
build-asan/build.ninja build-tsan/build.ninja:
	@tools/setup
	@tests/sanitized_build.sh $(if $(findstring tsan,$@),thread,address) $(@D)

asan tsan: %: build-%/build.ninja
	@tests/meson_test.py build-$@ $(if $(BUILD_ONLY),--wrapper true) --num-processes $$(($$(nproc) + 1)) \
		--suite unit --suite control $(if $(filter asan,$@),--suite hostile) --no-suite whole

# SECONDS for each of the two.
races: build-tsan/build.ninja
	@ninja -C build-tsan --quiet races
	@tests/stress/races.py --build build-tsan --seconds $(or $(SECONDS),300)

soak: all
	@tests/stress/soak.py --build $(BUILD) --seconds $(or $(SECONDS),600)

format:
	@tools/format

clean:
	@rm -rf build build-asan build-tsan build-fuzz build-deb build-fleet

.PHONY: all test test-gpu test-fleet test-runtimes demo bench install uninstall deb asan tsan races soak format clean
