/* SPDX-License-Identifier: Apache-2.0 */
/* See known_programs.h. */
#include "known_programs.h"

#include "client_program.h"

/* The place of the program, or -1. */
static int find_program(const struct known_programs *known, uint64_t hash)
{
    for (unsigned i = 0; i < KNOWN_PROGRAMS_MAX; i++)
        if (known->hashes[i] == hash)
            return (int)i;
    return -1;
}

bool known_programs_has(const struct known_programs *known, const struct client_program *program)
{
    return find_program(known, client_program_hash(program)) >= 0;
}

void known_programs_add(struct known_programs *known, const struct client_program *program)
{
    uint64_t hash = client_program_hash(program);

    if (find_program(known, hash) >= 0)
        return;
    known->hashes[known->next] = hash;
    known->next = (known->next + 1) % KNOWN_PROGRAMS_MAX;
}

void known_programs_remove(struct known_programs *known, const struct client_program *program)
{
    int place = find_program(known, client_program_hash(program));

    if (place >= 0)
        known->hashes[place] = 0;
}
