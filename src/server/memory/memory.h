/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a client. It consists of granules, which the client divides itself. The server
 * knows every granule, because a copy may access only the client's memory.
 *
 * Functions are the session thread's, addresses are those of the window, and sizes are bytes,
 * unless a comment says otherwise.
 */
#pragma once

#include "list.h"
#include "revocable.h"
#include "session.h"

enum granule_kind {
    GRANULE_SHARED, /* the GPU-visible region of the window: belongs to the window */
    GRANULE_DEVICE,
    GRANULE_HOST,
    GRANULE_MAPPED,   /* a mapping of the client's own: see vmm.c */
    GRANULE_IMPORTED, /* another client's: see ipc_memory.c */
    GRANULE_GLOBAL,   /* a variable of a module: belongs to the module, `module` */
    GRANULE_CREATED,  /* cuMemCreate()'s, in no extent of its own: see allocation.h */
};

struct ipc_share;
struct module;
struct swap_copy;

struct granule {
    struct list link; /* in the window's idle list */
    enum granule_kind kind;
    unsigned part; /* whose memory: a device's ordinal, or the number of devices for the host's */
    uint64_t address, size;
    uint64_t number; /* CREATED: its client's handle, which is no address; 0 otherwise */
    /* DEVICE and CREATED: */
    CUmemGenericAllocationHandle handle; /* the driver's */
    bool on_host;                        /* DEVICE: it is memory of the host for now */
    bool exported;                       /* its client has had a descriptor */
    bool dma_buf;                        /* its client has had a dma-buf of it */
    struct revocable kept;               /* where its client has the descriptor */
    struct swap_copy *swapped;           /* its contents while it leaves, is away, or returns */
    bool is_away;                        /* it has no memory: swap.h */
    struct swap_copy *kept_copy;         /* those of the last time: swap_kept.h */
    struct ipc_share *share;             /* DEVICE: once a range of it has a name */
    int fd;                              /* HOST: memfd, -1 otherwise */
    bool of_file;                        /* HOST: of a client's file, which is mapped: no fd */
    struct module *module;               /* GLOBAL: whose variable it is */
};

/* Lets the client copy to and from [address, address + size). 0 or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult memory_allow(struct session *session, const struct granule *like);

/* Takes that back; `address` is the first of the range. */
void memory_forbid(struct session *session, uint64_t address);

/* Charges device memory against the client's limit: false, and an error in the log, when that would
 * exceed it. The second gives a charge back. */
bool memory_charge(struct session *session, unsigned device, uint64_t size);
void memory_refund(struct session *session, unsigned device, uint64_t size);

/* Charges memory that had been charged before, whatever the limit is now. */
void memory_charge_again(struct session *session, unsigned device, uint64_t size);

/* Whether the client may have a descriptor of that memory; if so, counts it. QUOTA_KEPT_MEMORY
 * bounds the total memory of such descriptors of a client with a memory limit. The server cannot
 * see whether the client closes them when it releases memory. */
bool memory_may_export(struct session *session, unsigned device, uint64_t size);

/* The driver has too little memory of the device, whose context is current: frees memory that no
 * client uses, which may wait for all streams. False when there was none. */
bool memory_reclaim_unused(struct session *session, const struct device *device);

/* Creates memory of the driver. When a device has too little, it calls memory_reclaim_unused()
 * first. Returns the driver's result. */
CUresult memory_create(struct session *session, const struct device *device, uint64_t size,
                       const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *ret_handle);

/* Asks for memory; CUDA_ERROR_OUT_OF_MEMORY when there is not enough. */
typedef CUresult memory_attempt(struct session *session, void *context);

/* Makes an attempt in the context of the device, which needs about `size` bytes. When the device
 * has too little, it calls memory_reclaim_unused(), and then other clients may have to give memory
 * up, for which this may wait. The client's own memory may leave and return meanwhile. For a call
 * of the client that has changed nothing yet. Returns the last result. */
CUresult memory_attempt_with_room(struct session *session, const struct device *device,
                                  uint64_t size, memory_attempt *attempt, void *context);

/* Creates memory of the driver by such attempts. */
CUresult memory_create_with_room(struct session *session, const struct device *device,
                                 uint64_t size, const CUmemAllocationProp *prop,
                                 CUmemGenericAllocationHandle *ret_handle);

/* Gives access to mapped memory of the client: to its device, and to the devices with peer access.
 * Returns the driver's result. */
CUresult memory_grant(const struct session *session, unsigned device, uint64_t address,
                      uint64_t size);

/* The client's granule that an address lies in, of any kind, or NULL. */
struct granule *memory_granule_at(const struct session *session, uint64_t address);

/* Whether all of [address, address + size) is the client's own. */
bool memory_covers(const struct session *session, uint64_t address, uint64_t size);

/* Whether kernels of a device certainly reach all of it: page-locked memory, memory of the device,
 * and variables loaded for it. */
bool memory_is_reached(const struct session *session, const struct device *device, uint64_t address,
                       uint64_t size);

/* Calls `visit` for each range of the client's memory that kernels of the device reach and another
 * server would get. It is the device's own, and with `with_host` page-locked memory, too. The bytes
 * of a range are a multiple of a page. False when the client has memory of the device without
 * addresses, or that kernels do not reach now. */
typedef void memory_visitor(void *context, uint64_t address, uint64_t size);
bool memory_visit(struct session *session, const struct device *device, bool with_host,
                  memory_visitor *visit, void *context);

/* A number that changes when an address ceases to be the client's: code that keeps an address
 * checks it again then. */
uint64_t memory_generation(const struct session *session);

/* A number that changes when other memory with the same contents replaces memory of the client.
 * Then properties that a driver cached for an address are stale. */
uint64_t memory_exchanges(const struct session *session);

/* Whether the client has the address of a variable of the module. */
bool memory_lends(const struct session *session, const struct module *module);

/* The module is about to end, and its variables with it. */
void memory_forget_module(struct session *session, const struct module *module);

/* Gives back every granule, mapping, reservation and import. The client's work is done. */
void memory_release_all(struct session *session);

/* From any thread: the bytes of a device that the client has now, and the most it had. */
void memory_usage(const struct session *session, unsigned device, uint64_t *ret_used,
                  uint64_t *ret_peak);

/* From any thread: how often the client's memory limit refused memory. */
uint64_t memory_refusals(const struct session *session);

/* ---- the parts of the server and of a session: memory_state.c ---- */

/* As memory_reclaim_unused(), for one kind of memory. */
typedef bool memory_reclaimer(struct session *session, const struct device *device);

/* Whether a stream of the client waits for a value in [address, address + size). */
typedef bool memory_guard(struct session *session, uint64_t address, uint64_t size);

/* The device has too little for an attempt that needs `size` bytes: repeats it while others give
 * memory up, and returns its last result. */
typedef CUresult memory_room_maker(struct session *session, const struct device *device,
                                   uint64_t size, memory_attempt *attempt, void *context);

struct page_lock_options;

/* The server's devices are initialized. 0 or -ENOMEM. */
int server_memory_init(struct server *server, const struct page_lock_options *options);

/* Loads the hash kernel (hash_kernel.h), before there are clients that the load could stall. */
void server_memory_load_kernels(struct server *server);
void server_memory_fini(struct server *server);

/* Adds one of at most MEMORY_RECLAIMERS functions for memory_reclaim_unused(). Before there are
 * sessions.
 */
#define MEMORY_RECLAIMERS 3u
void memory_add_reclaimer(struct server *server, memory_reclaimer *reclaim);

/* Sets the function that finds memory in use by a stream's wait: such a wait would never end, or
 * fault, if the memory were released. Before there are sessions. */
void memory_set_guard(struct server *server, memory_guard *is_awaited);

/* Sets the function that has other clients give memory up. Before there are sessions. */
void memory_set_room_maker(struct server *server, memory_room_maker *make_room);

/* Calls that function; true comes with an error in the log. False when none is set. */
bool memory_is_awaited(struct session *session, const char *call, uint64_t address, uint64_t size);

/* The windows of the server, which have a lock of their own. */
struct windows *server_windows(struct server *server);

/* The part of a session. 0 or -ENOMEM. */
int session_memory_init(struct session *session);
void session_memory_fini(struct session *session);
