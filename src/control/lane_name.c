/* SPDX-License-Identifier: Apache-2.0 */
/* See lane_name.h. */
#include "lane_name.h"

#include <string.h>

#include "text.h"

#define BATCH "batch"

/* Names of services have at most 64 letters. */
_Static_assert(64 + sizeof(":" BATCH "_") + LANE_DOMAIN_MAX - 1 <= SERVER_NAME_MAX,
               "the name of a lane is cut");

void lane_name(const char *service, bool is_batch, const char *domain,
               char ret_name[SERVER_NAME_MAX])
{
    const char *class = is_batch ? BATCH : "";

    text_format(ret_name, SERVER_NAME_MAX, "%.64s%s%s%s%.*s", service,
                is_batch || *domain ? ":" : "", class, is_batch && *domain ? "_" : "",
                LANE_DOMAIN_MAX - 1, domain);
}

/* "" = none. */
static const char *domain_of(const char *name)
{
    const char *domain = name + strcspn(name, ":");

    domain += *domain == ':';
    if (lane_name_is_batch(name)) {
        domain += strlen(BATCH);
        domain += *domain == '_';
    }
    return domain;
}

void lane_name_other_class(const char *name, bool is_batch, char ret_name[SERVER_NAME_MAX])
{
    char service[SERVER_NAME_MAX];
    bool is_spare = lane_name_has_domain(name, LANE_DOMAIN_SPARE);

    lane_name_service(name, service);
    lane_name(service, is_batch, is_spare ? "" : domain_of(name), ret_name);
}

void lane_name_service(const char *name, char ret_service[SERVER_NAME_MAX])
{
    text_format(ret_service, SERVER_NAME_MAX, "%.*s", (int)strcspn(name, ":"), name);
}

bool lane_name_is_main(const char *name)
{
    return !strchr(name, ':');
}

bool lane_name_is_batch(const char *name)
{
    return text_starts_with(name + strcspn(name, ":"), ":" BATCH);
}

bool lane_name_has_domain(const char *name, const char *kind)
{
    const char *domain = domain_of(name), *rest = domain + strlen(kind);

    return text_starts_with(domain, kind) && (*rest == '\0' || *rest == '_');
}

bool lane_name_is_of(const char *name, const char *service)
{
    size_t length = strcspn(name, ":");

    return strlen(service) == length && !strncmp(name, service, length);
}

const char *lane_text(const char *name)
{
    const char *colon = strchr(name, ':');

    return colon ? colon + 1 : "main";
}
