/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of commands, written as their help shows it: "SERVER CLIENT", "SERVER [-f]",
 * "-uid UID [-mlopart]", "[PRIORITY]". Parsing follows that very text, so help and parser cannot
 * disagree. Nothing here knows what a command does.
 *
 *     SERVER CLIENT  process ids            PERCENT   0 < p, more than 100 counts as 100
 *     SHARE          0 < p <= 100           QUOTA     SHARE or none
 *     UID            user id                PRIORITY  0 or 1
 *     DEVICE         ordinal or UUID        SECONDS   0 .. a year
 *     MEMORY         integer with M or G    [ ]       optional; a word with - is an option
 *     CEILING        MEMORY or none         GROUP     letters, digits and _
 *     SMS            a number above 0       VERB, OBJECT, FIELD  words that the command knows
 *     NAME           of a server            FORMAT    table, csv or csv,noheader
 *     DEVICES        comma-separated        SIZE      integer with K, M or G
 *     BOOLEAN        true or false          NAMESPACE of a server
 *     PARTITION      of a server            CHUNKS    1 .. 4096
 *     FEATURE        memacct, context-share CHANGES   NAME=VALUE, several with commas
 *     CGROUP         a directory below /sys/fs/cgroup, or none
 *     LEVELS         0 .. 64, or all        POLICY    default, short, medium or long
 *     SHOWN          true or false          YIELD     a number up to 255
 *     LENT           true or false          MOST      1 .. 4096
 *     CLASS          critical, normal or batch
 *     ISOLATION      none, class, user, group, new or program
 *     OVERSUBSCRIBED true or false
 *     --key=KIND     an option of MPS v3: --key=value, or key=value
 *     --key KIND     an option of Funnel: --key value, or -key value
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "table.h"

#define GRAMMAR_WORDS_MAX 16
#define GRAMMAR_DEVICE_MAX 64
#define GRAMMAR_CGROUP_MAX 384
#define GRAMMAR_LEVELS_ALL UINT32_MAX
#define GRAMMAR_REASON_MAX 256

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
};

static inline bool grammar_given(const struct grammar_values *values, enum grammar_kind kind)
{
    return values->given & (1ull << kind);
}

/* Cuts `line` into words in place; returns how many, -E2BIG for more than GRAMMAR_WORDS_MAX. */
int grammar_split(char *line, char *ret_words[GRAMMAR_WORDS_MAX]);

/* Reads the words behind the command's name: 0, or -EINVAL with a message in `ret_reason`. */
int grammar_parse(const char *name, const char *grammar, char *const words[], int count,
                  struct grammar_values *ret_values, char ret_reason[GRAMMAR_REASON_MAX]);

/* Describes each argument in a line. */
void grammar_describe(const char *grammar, void (*line)(void *context, const char *text),
                      void *context);

/* Letters, digits and _, and not empty. */
bool grammar_is_name(const char *text);

/* Ordinals and beginnings of UUIDs, with commas between them. */
bool grammar_is_devices(const char *text);

/* The single values, for options and environment variables too: 0 or -EINVAL. */
int grammar_percent(const char *text, uint32_t *ret_centipercent);
int grammar_memory(const char *text, uint64_t *ret_bytes);
int grammar_size(const char *text, uint64_t *ret_bytes);
