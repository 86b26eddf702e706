/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Up to where a stream has to come until its kernels that may print are done: the fence behind them
 * tells, as a rule. Where none has come yet, the whole stream has to be idle. All is the session
 * thread's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device.h"

struct session;
struct stream;

/* Kernels that may print are about to be put into the stream. */
void print_checkpoint_open(struct stream *stream);

/* A fence is about to be put behind all that the stream has. */
void print_checkpoint_fence(struct stream *stream, uint32_t seq);

/* In the device's context: whether all those kernels of the client are done there, also those in
 * streams that it has ended. Takes the lock of its streams. */
bool print_checkpoints_are_reached(const struct session *session, const struct device *device);
