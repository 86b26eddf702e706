/* SPDX-License-Identifier: Apache-2.0 */
/* See http_parse.h. */
#include "http_parse.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "text.h"

static int parse_target(char *target, struct http_request *request)
{
    char *query = strchr(target, '?');

    if (*target != '/')
        return 400;
    if (query)
        *query++ = '\0';
    return text_copy(request->path, sizeof(request->path), target) &&
                   text_copy(request->query, sizeof(request->query), query ? query : "")
               ? 0
               : 400;
}

/* METHOD TARGET HTTP/1.x */
static int parse_first(char *line, struct http_request *request)
{
    char *target = strchr(line, ' ');
    char *version = target ? strchr(target + 1, ' ') : NULL;

    if (!version || strncmp(version + 1, "HTTP/1.", 7))
        return 400;
    *target++ = '\0';
    *version = '\0';
    request->is_post = !strcmp(line, "POST");
    request->is_head = !strcmp(line, "HEAD");
    if (!request->is_post && !request->is_head && strcmp(line, "GET"))
        return 405;
    return parse_target(target, request);
}

static int parse_header(char *line, struct http_request *request)
{
    static const char bearer[] = "Bearer ";
    char *value = strchr(line, ':');

    if (!value)
        return 400;
    *value++ = '\0';
    value += strspn(value, " \t");
    if (!strcasecmp(line, "Authorization") && !strncasecmp(value, bearer, sizeof(bearer) - 1))
        return text_copy(request->token, sizeof(request->token), value + sizeof(bearer) - 1) ? 0
                                                                                             : 400;
    if (!strcasecmp(line, "Host"))
        return !*request->host && text_copy(request->host, sizeof(request->host), value) ? 0 : 400;
    if (!strcasecmp(line, "Accept"))
        request->takes_openmetrics = strstr(value, "application/openmetrics-text") != NULL;
    return 0;
}

int http_parse(char *text, size_t size, struct http_request *ret_request)
{
    int status = strlen(text) == size ? 0 : 400;

    for (char *line = text, *next; line && !status; line = next) {
        next = strstr(line, "\r\n");
        if (next) {
            *next = '\0';
            next += 2;
        }
        status = line == text ? parse_first(line, ret_request) : parse_header(line, ret_request);
    }
    return status;
}

/* The text behind NAME= in the query, or NULL. */
static const char *find_value(const struct http_request *request, const char *name)
{
    size_t length = strlen(name);

    for (const char *part = request->query; part && *part; part = strchr(part, '&')) {
        part += *part == '&';
        if (!strncmp(part, name, length) && part[length] == '=')
            return part + length + 1;
    }
    return NULL;
}

bool http_query_has(const struct http_request *request, const char *name)
{
    return find_value(request, name) != NULL;
}

bool http_query_text(const struct http_request *request, const char *name, char *ret_text,
                     size_t capacity)
{
    const char *value = find_value(request, name);

    return value && text_format(ret_text, capacity, "%.*s", (int)strcspn(value, "&"), value);
}

int http_query_number(const struct http_request *request, const char *name, uint64_t *ret_value)
{
    char number[24];

    return http_query_text(request, name, number, sizeof(number)) && !text_to_u64(number, ret_value)
               ? 0
               : -EINVAL;
}
