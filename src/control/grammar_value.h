/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values in commands, options and environment variables: of which kinds they are, and what
 * texts each kind accepts. A kind of a command's value fills one field of struct grammar_values.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "table.h"

#define GRAMMAR_DEVICE_MAX 64
#define GRAMMAR_CGROUP_MAX 384
#define GRAMMAR_LEVELS_ALL UINT32_MAX

/* The values of a command. A value not given is 0; `given` tells it from a 0 that was. */
struct grammar_values {
    uint64_t given; /* bit = enum grammar_kind */
    pid_t server;
    pid_t client;
    uid_t uid;
    uint32_t centipercent;
    uint32_t priority;
    uint32_t seconds;
    uint64_t memory;
    uint64_t joint; /* JOINT */
    uint32_t idle;  /* IDLE; 0 = none */
    char device[GRAMMAR_DEVICE_MAX];
    char memory_text[24]; /* "2G", as it is shown again */
    uint32_t sms;
    char group[32];
    char verb[16];
    char object[96];
    bool force;          /* -f, --force */
    bool mlopart;        /* -mlopart */
    bool csv;            /* --csv */
    bool all;            /* --all */
    bool yes;            /* BOOLEAN */
    bool shown;          /* SHOWN */
    bool lent;           /* LENT */
    bool oversubscribed; /* OVERSUBSCRIBED */
    char name[65];
    char space[65]; /* NAMESPACE */
    char partition[65];
    uint32_t chunks;
    uint32_t most; /* MOST: of chunks */
    uint32_t timeslice_percent;
    uint32_t policy;                 /* POLICY: 0 default .. 3 long */
    uint32_t yield;                  /* YIELD */
    uint32_t levels;                 /* LEVELS; GRAMMAR_LEVELS_ALL = all */
    char cgroup[GRAMMAR_CGROUP_MAX]; /* "" = none */
    uint32_t class;                  /* enum client_class */
    uint32_t isolation;              /* enum isolation */
    char feature[16];
    char field[32];
    char devices[256];
    char changes[512]; /* of quotas: quota_table.h */
    enum table_format format;
};

enum grammar_kind {
    GRAMMAR_NOTHING,
    GRAMMAR_SERVER,
    GRAMMAR_CLIENT,
    GRAMMAR_UID,
    GRAMMAR_PERCENT,
    GRAMMAR_PRIORITY,
    GRAMMAR_SECONDS,
    GRAMMAR_MEMORY,
    GRAMMAR_DEVICE,
    GRAMMAR_GROUP,
    GRAMMAR_SMS,
    GRAMMAR_CEILING,
    GRAMMAR_VERB,
    GRAMMAR_OBJECT,
    GRAMMAR_NAME,
    GRAMMAR_FIELD,
    GRAMMAR_FORMAT,
    GRAMMAR_DEVICES,
    GRAMMAR_SIZE,
    GRAMMAR_BOOLEAN,
    GRAMMAR_NAMESPACE,
    GRAMMAR_PARTITION,
    GRAMMAR_CHUNKS,
    GRAMMAR_FEATURE,
    GRAMMAR_SHARE,
    GRAMMAR_QUOTA,
    GRAMMAR_CHANGES,
    GRAMMAR_TIMESLICE,
    GRAMMAR_CGROUP,
    GRAMMAR_LEVELS,
    GRAMMAR_SHOWN,
    GRAMMAR_POLICY,
    GRAMMAR_YIELD,
    GRAMMAR_CLASS,
    GRAMMAR_LENT,
    GRAMMAR_MOST,
    GRAMMAR_ISOLATION,
    GRAMMAR_OVERSUBSCRIBED,
    GRAMMAR_JOINT,
    GRAMMAR_IDLE,
};

static inline bool grammar_given(const struct grammar_values *values, enum grammar_kind kind)
{
    return values->given & (1ull << kind);
}

struct grammar_value {
    const char *name;
    const char *expected; /* what the value is, for people */
    int (*parse)(const struct grammar_value *kind, const char *word, struct grammar_values *values);
    size_t field;
    uint64_t least, most; /* of a number; `most` is the capacity of a text */
};

/* What a kind accepts. GRAMMAR_NOTHING has an empty name and no parse(). Static. */
const struct grammar_value *grammar_value_of(enum grammar_kind kind);

/* The kind of that name, such as "SECONDS", which need not end; or GRAMMAR_NOTHING. */
enum grammar_kind grammar_kind_named(const char *name, size_t length);

/* Letters, digits and _, and not empty. */
bool grammar_is_name(const char *text);

/* Ordinals and beginnings of UUIDs, with commas between them. */
bool grammar_is_devices(const char *text);

/* The single values, for options and environment variables too: 0 or -EINVAL. */
int grammar_percent(const char *text, uint32_t *ret_centipercent);
int grammar_memory(const char *text, uint64_t *ret_bytes);
int grammar_size(const char *text, uint64_t *ret_bytes);
