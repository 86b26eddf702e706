/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The software GPU's compute core: it runs grids from PTX.
 *
 * A module is immutable and belongs to no context. An instance is a module with memory of its own
 * (one a context), and an engine is the device's virtual SMs. Device addresses are host addresses
 * of this process, and a space lists those that a kernel may access.
 */
#pragma once

#include "sg_engine.h"
#include "sg_launch.h"
#include "sg_module.h"
#include "sg_space.h"
