/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping on a 32-bit word that another process may write (shared futexes). Any thread may call
 * these; the word, which may be an
 * _Atomic one, must stay mapped and have its natural alignment. */
#pragma once

#include <stdint.h>

/* Sleeps while *word is `expected`, at most `timeout_ns` (0 = no limit).
 * 0 = woken, possibly for no reason; -EAGAIN = *word was something else; -ETIMEDOUT; -EINTR.
 * The caller checks its own condition again in every case. */
int futex_wait(const void *word, uint32_t expected, uint64_t timeout_ns);

/* Wakes up to `count` sleepers; returns how many there were. Costs a system call, so callers look
 * for a sign of a sleeper first. */
int futex_wake(const void *word, int count);
