/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many threads launch at the same time. Those that launch into one context meet at a mutex of
 * NVIDIA's driver, which one that arrives just then gets ahead of those that sleep for it. With
 * more threads than CPUs one that sleeps comes too late again and again: of 32 clients one had
 * 0.001 of its share (H100). So then only half as many threads as there are CPUs call the driver,
 * in the order in which they came.
 */
#pragma once

#include <stdbool.h>

#include "device.h"
#include "server.h"

/* The part of a device whose launch part is there. */
void launch_slots_init(struct device *device);

/* From any thread: whether more clients are at work than the CPUs can carry. */
void server_launch_set_crowded(struct server *server, bool crowded);

/* Session thread: around a call that launches into the context of the device, and that waits for
 * nothing else. What the one returns goes to the other. */
bool launch_slot_take(const struct device *device);
void launch_slot_give(const struct device *device, bool taken);
