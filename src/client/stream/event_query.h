/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the server about an event. They are for events that other processes may record, and
 * for those that other streams wait for. The fence of the last record does not tell all of these.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

/* Whether all work before the last record of the event with that handle is done. Waits for the
 * server's answer, without the channel lock. */
CUresult event_query(uint64_t event, bool *ret_done);

/* Waits until it is, and asks every 20 us at first, and each millisecond in the end. */
CUresult event_query_wait(uint64_t event);
