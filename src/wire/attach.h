/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake of a client and its server, and their other messages on the socket.
 *
 *     client                                server (the daemon passed the socket on)
 *       hello                       ──>
 *                                   <──     attach_offer, with three descriptors
 *       attach_reply TAKEN          ──>     (something is mapped there: the next window, at most
 *                                   <──     attach_offer      ATTACH_TRIES offers)
 *       attach_reply OK             ──>
 *
 * Refused: a bare struct welcome (hello.h) with a status and a message, then the socket closes.
 * Each offer carries the descriptors anew, and the client closes those of an offer it turns down.
 * From then on commands go through the control region (region.h). The socket carries only
 * descriptors, as struct socket_message, and its end tells that the peer has closed. */
#pragma once

#include <stdint.h>

#include "hello.h"

#define ATTACH_TRIES 16
#define ATTACH_DEVICES_MAX HELLO_MAX_DEVICES

/* Handles that a client may have at a time: the limit of both sides' tables. */
#define ATTACH_HANDLES_MAX (1u << 20)

/* Windows: ranges of virtual addresses, the same in client, server and on the GPU. All are between
 * FIRST and END, and the part of each that is host memory is behind the devices' part. Reservations
 * are where cuMemAddressReserve's addresses are, of all clients.
 *
 * Position-independent programs are loaded near 0x550000000000 and libraries below 0x7fffffffffff,
 * so windows lie below both and reservations between them. ThreadSanitizer leaves a program a few
 * hundred GiB of all that. */
#ifdef __SANITIZE_THREAD__
#define WINDOW_FIRST 0x1000000000ull
#define WINDOW_END 0x7f00000000ull
#define WINDOW_HOST_SPAN (4ull << 30)
#define RESERVE_FIRST 0x550000000000ull
#define RESERVE_END 0x554000000000ull
#else
#define WINDOW_FIRST 0x110000000000ull
#define WINDOW_END 0x540000000000ull
#define WINDOW_HOST_SPAN (64ull << 30)
#define RESERVE_FIRST 0x5a0000000000ull
#define RESERVE_END 0x7a0000000000ull
#endif
#define RESERVE_GRANULARITY (2ull << 20)

/* The descriptors of an offer, in this order. */
enum attach_fd {
    ATTACH_FD_CONTROL = 0, /* struct region */
    ATTACH_FD_GPU = 1,     /* fence words, host-wait words and staging: region.h, GPU_REGION_... */
    ATTACH_FD_DEVICES = 2, /* struct device_record[device_count], read-only */
    ATTACH_FDS = 3,        /* how many there are */
};

/* Success: where everything is. window = [base, base + device_span + host_span). */
struct attach_offer {
    struct welcome welcome; /* status 0 */
    uint64_t window_base;   /* the first address of the window */
    uint64_t device_span;   /* of all devices, side by side from window_base */
    uint64_t device_stride; /* device i owns [window_base + i * device_stride, + device_stride) */
    uint64_t host_span;     /* pinned host memory, behind that */
    uint64_t region_size;   /* bytes of the control region */
    uint64_t gpu_address;   /* where both sides map the GPU-visible region: start of host part */
    uint64_t gpu_size;      /* bytes of it */
    uint64_t fence_address; /* uint32_t[fence_count] */
    uint64_t host_wait_address; /* uint32_t[host_wait_count] */
    uint64_t staging_address;   /* staging slots */
    uint64_t staging_size;      /* bytes of all of them */
    uint32_t ring_bytes;        /* of ring data in the control region */
    uint32_t fence_count;       /* of fence words */
    uint32_t host_wait_count;   /* of host-wait words */
    uint32_t device_count;      /* of device records */
    int32_t driver_version;     /* as cuDriverGetVersion: 13000 */
    uint32_t sm_centipercent;   /* in force for this client, 10000 = no limit */
};

enum attach_verdict {
    ATTACH_OK = 1,    /* the window is mapped: the client is attached */
    ATTACH_TAKEN = 2, /* something is mapped there: the server offers another window */
};

struct attach_reply {
    uint32_t magic;   /* ATTACH_REPLY_MAGIC */
    uint32_t verdict; /* enum attach_verdict */
};

#define ATTACH_REPLY_MAGIC 0x31524e46u /* "FNR1" */

/* Messages on the socket once attached. Each has exactly one descriptor, but that of a granule and
 * that of variables may have none. */
enum socket_message_kind {
    SOCKET_BLOB = 1,         /* client: memfd of `value` bytes, named `id` by a later command */
    SOCKET_HOST_GRANULE = 3, /* server: memfd to map at window address `value` */
    SOCKET_ALLOCATION = 4,   /* server: the memory behind allocation `value` */
    SOCKET_IMAGE = 5,        /* server: memfd of image number `value` */
    SOCKET_LINKED = 6,       /* server: memfd with the result of linking job `value` */
    SOCKET_DMA_BUF = 7,      /* server: a dma-buf of the memory from address `value` on */
    SOCKET_GRANULE = 8, /* server: the inbox (revocable.h) with a descriptor of the device memory at
                         * window address `value`, or of that allocation. Without an inbox the
                         * memory ends with the server, because its client has a memory limit */
    SOCKET_VARIABLES = 9, /* server, behind LEAVE_GRANTED: memfd of `value` bytes with what the
                           * client's variables hold (fnVariablesSet), or none. `id`: a
                           * DEVICE_CHANGE, or 0 */
};

/* A client that moves to another device: the server's numbers of both. Each inbox of its memory has
 * two descriptors then: of the old memory, and behind that of the copy on the other device. */
#define DEVICE_CHANGE(from, to) (1u << 16 | (uint32_t)(from) << 8 | (uint32_t)(to))
#define DEVICE_CHANGE_FROM(change) ((change) >> 8 & 0xff)
#define DEVICE_CHANGE_TO(change) ((change)&0xff)

struct socket_message {
    uint32_t kind;  /* enum socket_message_kind */
    uint32_t id;    /* of a blob: the number that a later command names it by */
    uint64_t value; /* as the kind says */
};

#define DEVICE_ATTRIBUTES_MAX 192
#define DEVICE_LIMITS_MAX 16

/* The facts of a device that a client knows without a request to the server. */
struct device_record {
    char name[256];                            /* as cuDeviceGetName */
    uint8_t uuid[16];                          /* as cuDeviceGetUuid */
    char pci_bus_id[16];                       /* as cuDeviceGetPCIBusId */
    uint64_t total_memory;                     /* bytes that the device has */
    uint64_t shown_memory;                     /* as cuDeviceTotalMem: those, or the limit */
    uint64_t granularity;                      /* of device memory granules, bytes */
    uint64_t limits[DEVICE_LIMITS_MAX];        /* by CUlimit, at the time of the attach */
    uint64_t limits_known;                     /* bit l: limits[l] is known */
    uint32_t peers;                            /* bit d: can reach device d's memory */
    int32_t priority_least, priority_greatest; /* as cuCtxGetStreamPriorityRange */
    int32_t context_status;        /* the result of creating a context on it: 0, or a CUresult */
    uint32_t atomic_peers;         /* bit d: all its atomics work natively on device d's memory */
    uint32_t partial_atomic_peers; /* bit d: only some of them do */
    int32_t attributes[DEVICE_ATTRIBUTES_MAX];       /* by CUdevice_attribute */
    uint8_t attributes_known[DEVICE_ATTRIBUTES_MAX]; /* 1: attributes[a] is known */
};
