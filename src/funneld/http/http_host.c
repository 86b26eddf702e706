/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A web site may have its own name resolve to 127.0.0.1 after its page has been loaded. The page
 * then counts as one of ours, and the browser lets it read the answers; but the browser says the
 * name.
 */
#include "http_host.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "text.h"

#define NAME_MAX_BYTES 256

/* "[::1]:9400" is ::1, "Name.:9400" is Name. */
static void take_name(const char *host, char name[NAME_MAX_BYTES])
{
    bool in_brackets = *host == '[';
    size_t length = in_brackets ? strcspn(host, "]") - 1 : strcspn(host, ":");

    if (!in_brackets && length && host[length - 1] == '.')
        length--;
    text_format(name, NAME_MAX_BYTES, "%.*s", (int)length, host + in_brackets);
}

static bool is_address(const char *name)
{
    struct in6_addr address;

    return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

static bool is_of_this_host(const char *name)
{
    char own[NAME_MAX_BYTES] = "";
    const char *last = strrchr(name, '.');

    if (gethostname(own, sizeof(own) - 1))
        *own = '\0';
    return !strcasecmp(last ? last + 1 : name, "localhost") || (*own && !strcasecmp(name, own));
}

/* In a list with commas. */
static bool is_listed(const char *list, const char *name)
{
    size_t size = strlen(name);

    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (size && strcspn(at, ",") == size && !strncasecmp(at, name, size))
            return true;
    return false;
}

bool http_host_is_ours(const char *host)
{
    char name[NAME_MAX_BYTES];

    if (!*host)
        return true;
    take_name(host, name);
    return is_address(name) || is_of_this_host(name) ||
           is_listed(getenv("FUNNEL_METRICS_HOSTS"), name);
}
