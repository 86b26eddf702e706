/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of a client, as the daemon has seen it itself. Two processes are the same program
 * when they are of one user and one container, and run one executable. All programs of an
 * interpreter share its executable, so there the script counts as well.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A file or folder, known without opening it; all zero = it could not be seen. */
struct client_file {
    uint64_t device;
    uint64_t inode;
    int64_t born_s; /* a number is given to another file later, but not the time of its birth */
    uint32_t born_ns;
};

#define CLIENT_PROGRAM_NAME_MAX 256u

struct client_program {
    uint32_t uid;
    uint64_t container; /* inode number of the PID namespace, 0 = it could not be seen */
    struct client_file executable;
    char path[CLIENT_PROGRAM_NAME_MAX];   /* its end; counts where the executable cannot be seen */
    char script[CLIENT_PROGRAM_NAME_MAX]; /* as the program's arguments name it; "" = no interpreter
                                           */
    struct client_file folder;            /* where a relative name begins */
};

bool client_program_is_same(const struct client_program *one, const struct client_program *other);

/* Equal for the same program; never 0. */
uint64_t client_program_hash(const struct client_program *program);
