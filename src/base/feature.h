/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The features that FUNNEL_OFF in the environment switches off: names with commas between them, as
 * in FUNNEL_OFF=recovery,spin. docs/environment.md says what is done instead. One list serves
 * clients, servers and the daemon; each takes no notice of the names of the others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define FEATURES(X)                             \
    X(RECOVERY, "recovery")                     \
    X(SPIN, "spin")                             \
    X(SHORT_SPIN, "short-spin")                 \
    X(LOCK_SPIN, "lock-spin")                   \
    X(TIMED_POLLING, "timed-polling")           \
    X(STREAMING_COPY, "streaming-copy")         \
    X(COPY_THREADS, "copy-threads")             \
    X(COPY_LOAD, "copy-load")                   \
    X(COPY_KERNEL, "copy-kernel")               \
    X(SHARED_COPY_STREAM, "shared-copy-stream") \
    X(LAUNCH_BATCHING, "launch-batching")       \
    X(FENCE_KERNEL, "fence-kernel")             \
    X(FENCE_COUNTER, "fence-counter")           \
    X(CONTEXT_HOLD, "context-hold")             \
    X(FAULT_SHORTCUT, "fault-shortcut")         \
    X(FLOW_CONTROL, "flow-control")             \
    X(IDLE_POINT, "idle-point")                 \
    X(LOCK_CHUNKS, "lock-chunks")               \
    X(SWAP_HASHES, "swap-hashes")               \
    X(PEER_COPIES, "peer-copies")               \
    X(MODULE_CACHE, "module-cache")             \
    X(IMAGE_SHARING, "image-sharing")           \
    X(KERNEL_PREFETCH, "kernel-prefetch")       \
    X(SPARE_SHARES, "spare-shares")             \
    X(STANDBY, "standby")                       \
    X(CONTROL_GROUPS, "control-groups")         \
    X(LANE_MOVES, "lane-moves")                 \
    X(VARIABLE_MOVES, "variable-moves")         \
    X(SENSORS, "sensors")                       \
    X(SERVER_NETWORK, "server-network")         \
    X(SANDBOX, "sandbox")

#define FEATURE_NUMBER(name, text) FEATURE_##name,
enum feature { FEATURES(FEATURE_NUMBER) FEATURE_COUNT };
#undef FEATURE_NUMBER

bool feature_is_off(enum feature feature);

/* As feature_is_off(), for repeated questions: reads the environment the first time only, as other
 * threads of a program may be writing it. */
bool feature_is_off_once(enum feature feature);

/* The message for the log about names in FUNNEL_OFF that no feature has: false when there are none.
 * The message is cut to `size` bytes. */
bool feature_complaint(char *ret_message, size_t size);
