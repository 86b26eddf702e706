/* SPDX-License-Identifier: Apache-2.0 */
/* See fate_domain.h. */
#include "fate_domain.h"

#include <inttypes.h>

#include "client_class.h"
#include "isolation.h"
#include "journal.h"
#include "quarantine.h"
#include "server_process.h"
#include "text.h"

/* In a server for several users no user chooses a domain of another user's programs, by a hash or
 * by the name of a group. */
static bool name_of_user(const struct daemon *daemon, uint32_t uid, const char *name,
                         char ret_domain[LANE_DOMAIN_MAX])
{
    if (daemon->multiuser)
        text_format(ret_domain, LANE_DOMAIN_MAX, "%s_%u", name, uid);
    else
        text_copy(ret_domain, LANE_DOMAIN_MAX, name);
    return true;
}

static bool name_of_program(const struct daemon *daemon, const char *kind,
                            const struct client_program *program, char ret_domain[LANE_DOMAIN_MAX])
{
    char name[LANE_DOMAIN_MAX];

    text_format(name, sizeof(name), "%s_%016" PRIx64, kind, client_program_hash(program));
    return name_of_user(daemon, program->uid, name, ret_domain);
}

static bool name_of_group(const struct daemon *daemon, const struct server_identity *identity,
                          char ret_domain[LANE_DOMAIN_MAX])
{
    char name[LANE_DOMAIN_MAX];

    if (!*identity->group)
        return false;
    text_format(name, sizeof(name), "group_%s", identity->group);
    return name_of_user(daemon, identity->uid, name, ret_domain);
}

static bool has_clients(const struct daemon *daemon, const struct fate_wish *wish,
                        const char *domain)
{
    char name[SERVER_NAME_MAX];
    const struct server_process *server;

    lane_name(wish->service, wish->class == CLASS_BATCH, domain, name);
    server = server_process_find(daemon, name);
    return server && !server->stopping && server->handed_over;
}

/* Processes of one program stay together, also when one of them has ended meanwhile. */
static bool name_of_new(const struct daemon *daemon, const struct client_program *program,
                        const struct fate_wish *wish, char ret_domain[LANE_DOMAIN_MAX])
{
    name_of_program(daemon, LANE_DOMAIN_NEW, program, ret_domain);
    if (!known_programs_has(&daemon->known, program) || has_clients(daemon, wish, ret_domain))
        return true;
    *ret_domain = '\0';
    return false;
}

/* Batch programs have a lane by their class already. */
static bool name_of_class(uint32_t class, char ret_domain[LANE_DOMAIN_MAX])
{
    if (class == CLASS_CRITICAL)
        text_copy(ret_domain, LANE_DOMAIN_MAX, client_class_name(class));
    return false;
}

static bool find_of(const struct daemon *daemon, uint32_t isolation,
                    const struct server_identity *identity, const struct client_program *program,
                    const struct fate_wish *wish, char ret_domain[LANE_DOMAIN_MAX])
{
    switch (isolation) {
    case ISOLATION_PROGRAM:
        return name_of_program(daemon, "program", program, ret_domain);
    case ISOLATION_NEW:
        return name_of_new(daemon, program, wish, ret_domain);
    case ISOLATION_GROUP:
        return name_of_group(daemon, identity, ret_domain);
    case ISOLATION_USER:
        return daemon->multiuser && name_of_user(daemon, identity->uid, "user", ret_domain);
    case ISOLATION_CLASS:
        return name_of_class(wish->class, ret_domain);
    }
    return false;
}

bool fate_domain_find(const struct daemon *daemon, const struct server_identity *identity,
                      const struct client_program *program, const struct fate_wish *wish,
                      char ret_domain[LANE_DOMAIN_MAX])
{
    bool is_of_user = false;

    *ret_domain = '\0';
    if (quarantine_has_client(daemon, identity, program))
        return name_of_user(daemon, identity->uid, LANE_DOMAIN_QUARANTINE, ret_domain);
    for (uint32_t i = ISOLATION_PROGRAM; i > ISOLATION_NONE && !*ret_domain; i--)
        if (i == wish->set || i == wish->asked)
            is_of_user = find_of(daemon, i, identity, program, wish, ret_domain);
    return is_of_user;
}

bool fate_domain_needs_program(const struct fate_wish *wish)
{
    return wish->set >= ISOLATION_NEW || wish->asked == ISOLATION_NEW ||
           wish->asked == ISOLATION_PROGRAM;
}
