/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that have ended once without a fault, as far as this daemon has seen. `--isolate new`
 * keeps others out of the lanes of these. What a program is stands in client_program.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct client_program;

/* When there are more, the one that came first is forgotten. */
#define KNOWN_PROGRAMS_MAX 1024u

struct known_programs {
    uint64_t hashes[KNOWN_PROGRAMS_MAX]; /* 0 = none */
    unsigned next;                       /* where the next one is entered */
};

bool known_programs_has(const struct known_programs *known, const struct client_program *program);

void known_programs_add(struct known_programs *known, const struct client_program *program);

/* It has faulted, and has to end well once more. */
void known_programs_remove(struct known_programs *known, const struct client_program *program);
