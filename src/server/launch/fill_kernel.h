/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel that makes a memset. A memset of the driver's is a call of its own, and the launches
 * before and behind it are in two graphs. As a launch it goes to the driver with them.
 */
#pragma once

#include <stdbool.h>

struct device;
struct session;
struct stream;
struct wire_fnMemset;

/* For a device that has its part of the launch subsystem, and has no clients yet. Without the
 * kernel the driver makes all memsets. */
void fill_kernel_load(struct device *device);
void fill_kernel_unload(struct device *device);

/* Sets the memset aside like a launch (launch_batch.h). Its range has been checked. False when the
 * driver has to make it: it is large, or has several rows, a fence or odd addresses. */
bool fill_kernel_add(struct session *session, const struct wire_fnMemset *in,
                     struct stream *stream);
