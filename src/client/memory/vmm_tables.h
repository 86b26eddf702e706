/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the three parts of virtual memory management share: tables of reservations and mappings,
 * and the lock over them. It is held through the calls that change them, so that both sides see
 * these in the same order.
 */
#pragma once

#include "cleanup.h"
#include "client_call.h"
#include "client_memory.h"
#include "client_vmm.h"
#include "ranges.h"

/* Physical memory. The handle is the server's for as long as it is held or mapped; the program may
 * use it while it holds references. */
struct physical {
    uint64_t handle;
    struct device *device;
    uint64_t size; /* 0 = imported, not known */
    int fd;        /* its inbox (revocable.h), or the descriptor of imported memory; -1 = none */
    bool is_made;  /* the server's answer has come: else its command is sent again */
    bool shared;   /* the program has exported it */
    unsigned references, mappings;
    CUmemAllocationProp prop;
};

struct mapping {
    uint64_t address, size, id;
    struct physical *physical;
    bool is_made;                             /* as that of physical memory */
    unsigned char access[ATTACH_DEVICES_MAX]; /* CUmemAccess_flags */
};

struct vmm_tables {
    pthread_mutex_t lock;
    struct ranges reservations; /* no values */
    struct ranges mappings;     /* struct mapping */
};

extern struct vmm_tables vmm;

#define VMM_LOCKED _cleanup_mutex_ pthread_mutex_t *vmm_held = call_mutex_hold(&vmm.lock)

/* The mapping that contains an address, NULL when none does. */
struct mapping *vmm_mapping_at_locked(uint64_t address);
