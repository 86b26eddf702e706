/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables and keys of the configuration file. A key is read as the option of that name
 * is, of `server create`, `server set`, `namespace set` and `sm-partition create`.
 */
#pragma once

#include "daemon.h"
#include "grammar.h"
#include "toml.h"

#define CONFIG_PATH_PARTS 5
#define CONFIG_VALUE_MAX 512

struct config_kind;

/* Where a table is. */
struct config_path {
    unsigned depth;
    bool element; /* one of an array, [[...]] */
    const char *part[CONFIG_PATH_PARTS];
};

struct config {
    struct daemon *daemon;
    const struct config_kind *kind;     /* of the table that is being read; NULL outside */
    struct service *service;            /* it is about this server ... */
    struct mps_namespace *space;        /* ... this namespace of it ... */
    char device[GRAMMAR_DEVICE_MAX];    /* ... this device of it ... */
    struct static_partition *partition; /* ... and this partition of that */
    uid_t uid;                          /* it is about this user, or ... */
    char group[HELLO_GROUP_MAX];        /* ... about this group */
};

/* Writes the message to `reason`; returns -EINVAL. */
int config_refuse(char *reason, const char *message);

/* A table begins, then come its keys, with the values as text and commas between those of an array;
 * then it ends. Each does what it says at once: 0, or -errno with a message in `reason`, which has
 * TOML_REASON_MAX bytes. */
int config_begin_table(struct config *config, const struct config_path *table, char *reason);
int config_take_value(struct config *config, const char *key, const char *value, char *reason);
int config_end_table(struct config *config, char *reason);
