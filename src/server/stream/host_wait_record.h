/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values that streams of a session wait for, in the order in which the waits were made. Each
 * holds an event behind it, and counts against the quota `waits` until it is known to be over.
 *
 * All of it is the session thread's. Only files of this folder include this.
 */
#pragma once

#include "stream.h"

struct host_wait {
    struct list link;
    const struct device *device;
    uint32_t stream_word; /* the fence word of its stream */
    uint64_t address, value;
    unsigned flags;
    bool wide;      /* 64 bits */
    bool is_first;  /* of its stream: host_wait_release.c */
    CUevent passed; /* recorded behind it */
};

/* CUDA_ERROR_INVALID_VALUE for a wait that nothing can end, or CUDA_ERROR_OUT_OF_MEMORY. The caller
 * records the event behind the wait. */
CUresult host_wait_record(struct stream *stream, uint64_t address, uint64_t value, unsigned flags,
                          bool wide, struct host_wait **ret_wait);

/* Whether the stream has passed the wait, or has no event behind it. In the stream's context. */
bool host_wait_is_over(const struct host_wait *wait);

/* Takes the record of a wait that is over out of the session, with its charge, and frees it. */
void host_wait_forget(struct session *session, struct host_wait *wait);

/* What the client has written to one of its host-wait words. */
uint32_t host_wait_word_load(const struct session *session, uint32_t word);
