/* SPDX-License-Identifier: Apache-2.0 */
/* See control_group_name.h. Users name control groups below their own as they like, so that a name
 * is no proof. As a group that a program names itself, it may only tighten limits. */
#include "control_group_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "hash.h"
#include "text.h"

#define COMPONENT_MAX 256 /* NAME_MAX, and NUL */
#define UID_DIGITS 32
#define ID_DIGITS 64
#define SHORT_DIGITS 12
#define CONTAINER_PREFIX "container_"

enum rank { RANK_NONE, RANK_SCOPE, RANK_CONTAINER, RANK_JOB, RANK_POD };

struct search {
    enum rank rank, most;                          /* of the name so far, and that it may have */
    bool in_kubernetes, in_slurm, in_user_manager; /* of the path so far */
    char name[HELLO_GROUP_MAX];
};

static void keep_name(struct search *search, enum rank rank, const char *prefix, const char *rest)
{
    if (rank < search->rank || rank > search->most)
        return;
    search->rank = rank;
    text_format(search->name, sizeof(search->name), "%s%s", prefix, rest);
}

static bool cut_suffix(char *text, const char *suffix)
{
    size_t length = strlen(text), end = strlen(suffix);

    if (length <= end || strcmp(text + length - end, suffix))
        return false;
    text[length - end] = '\0';
    return true;
}

static bool is_hexadecimal(char digit)
{
    return (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f');
}

/* All of `text` is that many hexadecimal digits, between which there may be - and _. */
static bool take_digits(const char *text, unsigned count, char ret_first[SHORT_DIGITS + 1])
{
    unsigned found = 0;

    for (; *text; text++) {
        if (*text == '-' || *text == '_')
            continue;
        if (!is_hexadecimal(*text))
            return false;
        if (found < SHORT_DIGITS)
            ret_first[found] = *text;
        found++;
    }
    ret_first[SHORT_DIGITS] = '\0';
    return found == count;
}

/* "pod<UID>", or "kubepods-burstable-pod<UID>" with _ for - in the UID. */
static void recognize_pod(struct search *search, const char *component)
{
    char digits[SHORT_DIGITS + 1];

    for (const char *at = component; (at = strstr(at, "pod")); at++)
        if ((at == component || at[-1] == '-') && take_digits(at + 3, UID_DIGITS, digits))
            keep_name(search, RANK_POD, "pod_", digits);
}

static void recognize_job(struct search *search, const char *component)
{
    size_t digits = text_starts_with(component, "job_") ? strspn(component + 4, "0123456789") : 0;

    if (digits && !component[4 + digits] && 4 + digits < sizeof(search->name))
        keep_name(search, RANK_JOB, "", component);
}

/* "<ID>", or behind the name of an engine: "docker-<ID>", "pod...:cri-containerd:<ID>". */
static void recognize_container(struct search *search, const char *component)
{
    size_t length = strlen(component);
    const char *id = length < ID_DIGITS ? "" : component + length - ID_DIGITS;
    char digits[SHORT_DIGITS + 1];

    if (strpbrk(id, "-_") || !take_digits(id, ID_DIGITS, digits))
        return;
    if (id == component || id[-1] == '-' || id[-1] == ':')
        keep_name(search, RANK_CONTAINER, CONTAINER_PREFIX, digits);
}

/* A name that is too long ends with a hash of the whole. */
static void recognize_scope(struct search *search, const char *component)
{
    char rest[HELLO_GROUP_MAX - sizeof("scope_") + 1];
    size_t length = strlen(component), kept = sizeof(rest) - 1;

    if (!text_copy(rest, sizeof(rest), component)) {
        kept -= 9;
        text_format(rest + kept, 10, "_%08x", (unsigned)hash_bytes(component, length));
        memcpy(rest, component, kept);
    }
    for (char *letter = rest; *letter; letter++)
        if (!isalnum((unsigned char)*letter) || !isascii((unsigned char)*letter))
            *letter = '_';
    keep_name(search, RANK_SCOPE, "scope_", rest);
}

static void recognize(struct search *search, char *component)
{
    bool is_scope = cut_suffix(component, ".scope");

    search->in_kubernetes |= strstr(component, "kubepods") != NULL;
    search->in_slurm |= strstr(component, "slurm") != NULL;
    cut_suffix(component, ".slice");
    if (search->in_kubernetes)
        recognize_pod(search, component);
    if (search->in_slurm)
        recognize_job(search, component);
    recognize_container(search, component);
    if (is_scope && search->in_user_manager && strcmp(component, "init"))
        recognize_scope(search, component);
    search->in_user_manager |= text_starts_with(component, "user@");
}

static void search_path(struct search *search, const char *path, const char *end)
{
    search->in_kubernetes = search->in_slurm = search->in_user_manager = false;
    while (path < end) {
        const char *slash = memchr(path, '/', (size_t)(end - path));
        size_t length = (size_t)((slash ? slash : end) - path);
        char component[COMPONENT_MAX];

        if (length < sizeof(component)) {
            memcpy(component, path, length);
            component[length] = '\0';
            recognize(search, component);
        }
        path += length + 1;
    }
}

/* A name of a rank from `least` to `most`. */
static void find_name(const char *groups, enum rank least, enum rank most,
                      char ret_name[HELLO_GROUP_MAX])
{
    struct search search = {.rank = least, .most = most};

    for (const char *line = groups; *line;) {
        const char *end = line + strcspn(line, "\n");
        const char *path = memchr(line, '/', (size_t)(end - line));

        if (path)
            search_path(&search, path, end);
        line = end + (*end == '\n');
    }
    text_copy(ret_name, HELLO_GROUP_MAX, search.name);
}

void control_groups_name(const char *groups, char ret_name[HELLO_GROUP_MAX])
{
    find_name(groups, RANK_NONE, RANK_POD, ret_name);
}

void control_groups_container(const char *groups, char ret_id[HELLO_GROUP_MAX])
{
    char name[HELLO_GROUP_MAX];

    find_name(groups, RANK_CONTAINER, RANK_CONTAINER, name);
    text_copy(ret_id, HELLO_GROUP_MAX, *name ? name + strlen(CONTAINER_PREFIX) : "");
}
