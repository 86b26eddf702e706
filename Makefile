# SPDX-License-Identifier: Apache-2.0
BUILD ?= build
all: $(BUILD)/build.ninja
	ninja -C $(BUILD)
$(BUILD)/build.ninja:
	meson setup $(BUILD)
.PHONY: all
