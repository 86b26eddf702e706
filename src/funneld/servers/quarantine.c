/* SPDX-License-Identifier: Apache-2.0 */
/* See quarantine.h. */
#include "quarantine.h"

#include "clock.h"
#include "journal.h"
#include "text.h"

/* ---- the table ---- */

static bool is_of(const struct quarantined *entry, const struct client_program *program)
{
    return entry->until && client_program_is_same(&entry->program, program);
}

/* The program's entry, or the one to write it into. */
static struct quarantined *find_program(struct quarantine *quarantine,
                                        const struct client_program *program)
{
    struct quarantined *oldest = &quarantine->entries[0];

    for (unsigned i = 0; i < QUARANTINE_ENTRIES; i++) {
        struct quarantined *entry = &quarantine->entries[i];

        if (is_of(entry, program))
            return entry;
        if (entry->until < oldest->until)
            oldest = entry;
    }
    return oldest;
}

bool quarantine_add_fault(struct quarantine *quarantine, const struct client_program *program,
                          uint64_t now)
{
    bool was_in = quarantine_has(quarantine, program, now);

    *find_program(quarantine, program) =
        (struct quarantined){.program = *program, .until = now + QUARANTINE_LASTS_NS};
    return !was_in;
}

bool quarantine_has(const struct quarantine *quarantine, const struct client_program *program,
                    uint64_t now)
{
    for (unsigned i = 0; i < QUARANTINE_ENTRIES; i++)
        if (is_of(&quarantine->entries[i], program))
            return now < quarantine->entries[i].until;
    return false;
}

unsigned quarantine_count(const struct quarantine *quarantine, uint32_t uid, uint64_t now)
{
    unsigned count = 0;

    for (unsigned i = 0; i < QUARANTINE_ENTRIES; i++)
        count += quarantine->entries[i].program.uid == uid && now < quarantine->entries[i].until;
    return count;
}

/* ---- what the daemon does about it ---- */

static bool has_all_of(const struct daemon *daemon, uint32_t uid)
{
    return daemon->multiuser &&
           quarantine_count(&daemon->quarantine, uid, clock_ns()) >= QUARANTINE_PROGRAMS;
}

void quarantine_note(struct daemon *daemon, const struct server_identity *identity,
                     const struct client_program *program)
{
    bool had_all = has_all_of(daemon, identity->uid);

    known_programs_remove(&daemon->known, program);
    if (!quarantine_add_fault(&daemon->quarantine, program, clock_ns()))
        return;
    journal("User %u: %.160s has faulted. Its program is in quarantine: a server of its own serves "
            "it, until it has not faulted for %llu minutes",
            identity->uid, identity->command,
            (unsigned long long)(QUARANTINE_LASTS_NS / NS_PER_SEC / 60));
    if (!had_all && has_all_of(daemon, identity->uid))
        journal("User %u: %u programs are in quarantine, and with them all that the user starts",
                identity->uid, QUARANTINE_PROGRAMS);
}

bool quarantine_has_client(const struct daemon *daemon, const struct server_identity *identity,
                           const struct client_program *program)
{
    if (!quarantine_has(&daemon->quarantine, program, clock_ns()) &&
        !has_all_of(daemon, identity->uid))
        return false;
    journal_with(LOG_EVENT(identity->pid, 0), "Client %d is in quarantine, as user %u's %.160s",
                 identity->pid, identity->uid, identity->command);
    return true;
}
