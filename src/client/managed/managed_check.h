/* SPDX-License-Identifier: Apache-2.0 */
/* FUNNEL_MANAGED_CHECK: finds page faults in managed memory that work in flight may use. CUDA
 * forbids such accesses where concurrentManagedAccess is 0. */
#pragma once

#include "managed_allocation.h"
#include "page_watch.h"

/* True for such a page fault: the log has it, and the thread gets SIGSEGV. Without the switch
 * always false. Takes client->lock for a moment. */
bool check_refuses(const struct page_fault *fault);
