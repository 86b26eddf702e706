/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error states of the multiprocessors after a fault. NVIDIA's driver library reads them, and
 * clears them on all multiprocessors, before it reports the error. After a trap it does so once for
 * each of its channels, and each time takes 75 ms (H200, 580.159.04): 1.9 s with 24 hardware
 * queues. The context has ended by then, and its server ends with it. So this process lets the
 * states be, and hears of a trap after 10 ms.
 */
#pragma once

#include <stdbool.h>

/* Before an ioctl() of this process, from any thread: whether the call is such a one, which has its
 * answer now and is not made. */
bool error_states_answer(unsigned long request, void *argument);
