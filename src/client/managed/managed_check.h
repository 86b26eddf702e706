/* SPDX-License-Identifier: Apache-2.0 */
/* FUNNEL_MANAGED_CHECK: finds touches of managed memory that work in flight may use, which CUDA
 * forbids where concurrentManagedAccess is 0. */
#pragma once

#include "managed_block.h"
#include "page_watch.h"

/* True when the touch was such a one: it is in the log, and the thread gets SIGSEGV. Without the
 * switch always false. Takes client->lock for a moment. */
bool check_refuses(const struct page_touch *touch);
