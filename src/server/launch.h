/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain launches: those without attributes, which nearly all are.
 */
#pragma once

#include "chain.h"
#include "server_dispatch.h"

/* What the command asks for. It points into the command. */
struct launch launch_of(const struct wire_cuLaunchKernelEx *in, struct function *function);

/* Launches it by itself. */
CUresult launch_plain(const struct launch *launch, const struct stream *stream);
