/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a client's variables on their way to another server, while the client moves there
 * by a plan (session_leave.h). Only what has changed since the load travels: the other server's
 * driver writes the first values itself, with addresses that are right there.
 *
 *     this server ── file ──> client, which keeps it ── file, by fnVariablesSet ──> the other one
 *
 * The file has a record for each variable: this header, the name with its NUL, and the contents.
 * Zeros fill name and contents up to a multiple of eight bytes.
 */
#pragma once

#include "move_obstacle.h"
#include "session.h"

struct saved_record {
    uint64_t module;    /* the client's handle */
    uint64_t name_size; /* bytes, with the NUL and the zeros behind it */
    uint64_t size;      /* bytes of contents, without the zeros behind them */
};

/* Bytes of a file. A client with more stays. */
#define SAVED_VARIABLES_MAX (64ull << 20)

static inline uint64_t saved_round_up(uint64_t size)
{
    return (size + 7) / 8 * 8;
}

/* A variable of the client, changed or not. */
struct variable_place {
    uint64_t address, size; /* the first address behind the variable counts */
    const char *name;       /* valid while the client has its module */
};

struct saved_variables {
    char *bytes; /* records */
    size_t size, capacity;
    struct variable_place *places;
    size_t count, places_capacity;
    uint64_t first, end; /* all places lie between these addresses */
};

/* Whether modules of the client keep state, so that saved_variables_read() is needed. */
bool session_has_variables(struct session *session);

/* Reads the variables of all modules of the client, whose work is done. OBSTACLE_NONE, or why they
 * cannot be copied, with a line in the log. The caller ends the result in either case. */
enum move_obstacle saved_variables_read(struct session *session, struct saved_variables *ret_saved);

/* Frees what the result has. It may be empty. */
void saved_variables_fini(struct saved_variables *saved);

/* The place that contains an address, or NULL. */
const struct variable_place *saved_variables_place(const struct saved_variables *saved,
                                                   uint64_t address);

/* The first word of the saved contents that is an address inside a variable: 0 when there is none.
 */
uint64_t saved_variables_address(const struct saved_variables *saved);
