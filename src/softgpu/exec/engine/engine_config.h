/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of an engine, and its defaults. */
#pragma once

#include "sg_engine.h"

/* The same with an H100's numbers and this machine's CPUs in the place of zeros. */
struct sg_engine_config config_complete(const struct sg_engine_config *given);

/* What the engine's SMs have. */
const struct sg_engine_config *engine_config(const struct sg_engine *engine);
