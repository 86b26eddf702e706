/* SPDX-License-Identifier: Apache-2.0 */
/* See quarantine.h. */
#include "quarantine.h"

#include <string.h>

#include "clock.h"
#include "journal.h"
#include "server_process.h"
#include "text.h"

/* ---- the table ---- */

static bool is_of(const struct quarantined *entry, uint32_t uid, const char *command)
{
    return entry->faults && entry->uid == uid && !strcmp(entry->command, command);
}

static struct quarantined *find(struct quarantine *quarantine, uint32_t uid, const char *command)
{
    struct quarantined *oldest = &quarantine->entries[0];

    for (unsigned i = 0; i < QUARANTINE_ENTRIES; i++) {
        struct quarantined *entry = &quarantine->entries[i];

        if (is_of(entry, uid, command))
            return entry;
        if (entry->last < oldest->last)
            oldest = entry;
    }
    memset(oldest, 0, sizeof(*oldest));
    oldest->uid = uid;
    text_copy(oldest->command, sizeof(oldest->command), command);
    return oldest;
}

bool quarantine_add_fault(struct quarantine *quarantine, uint32_t uid, const char *command,
                          uint64_t now)
{
    struct quarantined *entry = find(quarantine, uid, command);
    bool was_in = now < entry->until;

    entry->last = now;
    entry->times[entry->faults++ % QUARANTINE_FAULTS] = now;
    /* The next place holds the earliest of the last faults. */
    uint64_t earliest = entry->times[entry->faults % QUARANTINE_FAULTS];
    bool often = entry->faults >= QUARANTINE_FAULTS && now - earliest <= QUARANTINE_WITHIN_NS;

    if (was_in || often)
        entry->until = now + QUARANTINE_LASTS_NS;
    return often && !was_in;
}

bool quarantine_has(const struct quarantine *quarantine, uint32_t uid, const char *command,
                    uint64_t now)
{
    for (unsigned i = 0; i < QUARANTINE_ENTRIES; i++)
        if (is_of(&quarantine->entries[i], uid, command))
            return now < quarantine->entries[i].until;
    return false;
}

bool quarantine_has_user(const struct quarantine *quarantine, uint32_t uid, uint64_t now)
{
    for (unsigned i = 0; i < QUARANTINE_ENTRIES; i++)
        if (quarantine->entries[i].uid == uid && now < quarantine->entries[i].until)
            return true;
    return false;
}

/* ---- what the daemon does about it ---- */

void quarantine_note(struct daemon *daemon, const struct server_identity *identity)
{
    if (!*identity->command ||
        !quarantine_add_fault(&daemon->quarantine, identity->uid, identity->command, clock_ns()))
        return;
    journal("User %u: %.160s has faulted %u times within a minute. It is in quarantine: a server "
            "of its own serves it, until it has not faulted for %llu minutes",
            identity->uid, identity->command, QUARANTINE_FAULTS,
            (unsigned long long)(QUARANTINE_LASTS_NS / NS_PER_SEC / 60));
}

void quarantine_change_route(const struct daemon *daemon, const struct server_identity *identity,
                             struct server_route *route)
{
    char name[SERVER_NAME_MAX];

    if (!quarantine_has(&daemon->quarantine, identity->uid, identity->command, clock_ns()) ||
        !text_format(name, sizeof(name), "%s" QUARANTINE_SUFFIX, route->name))
        return;
    text_copy(route->name, sizeof(route->name), name);
    journal("Client %d is in quarantine, as user %u's %.160s", identity->pid, identity->uid,
            identity->command);
}

bool quarantine_owns(const struct server_process *server)
{
    size_t length = strlen(server->name), suffix = strlen(QUARANTINE_SUFFIX);

    return length > suffix && !strcmp(server->name + length - suffix, QUARANTINE_SUFFIX);
}

static bool has_anyone(const struct daemon *daemon, const struct server_process *server)
{
    uint64_t now = clock_ns();

    if (!daemon->multiuser)
        return quarantine_has_user(&daemon->quarantine, server->uid, now);
    for (unsigned i = 0; i < QUARANTINE_ENTRIES; i++)
        if (now < daemon->quarantine.entries[i].until)
            return true;
    return false;
}

void quarantine_check(struct server_process *server)
{
    if (!quarantine_owns(server) || server->stopping || has_anyone(server->daemon, server))
        return;
    journal("Server %d: no program is in quarantine any more; it ends after its last client",
            (int)server->pid);
    server_process_stop(server, false);
}
