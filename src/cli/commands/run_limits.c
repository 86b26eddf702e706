/* SPDX-License-Identifier: Apache-2.0 */
/* See run_limits.h. */
#include "run_limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "client_class.h"
#include "command_client.h"
#include "daemon_lines.h"
#include "grammar.h"
#include "hello.h"
#include "isolation.h"
#include "snapshot.h"
#include "text.h"

bool run_limits_are_given(const struct run_limits *limits)
{
    return limits->sm || limits->sms || limits->memory || limits->priority || limits->class ||
           limits->isolation || limits->shows_limit;
}

/* ---- values ---- */

/* "25" or "25%": the number alone. */
static bool parse_share(const char *text, char ret_number[16])
{
    size_t length = strlen(text);
    uint32_t centipercent;

    length -= length && text[length - 1] == '%';
    return text_format(ret_number, 16, "%.*s", (int)length, text) &&
           !grammar_percent(ret_number, &centipercent) && strtod(ret_number, NULL) <= 100;
}

static bool parse_count(const char *text, unsigned *ret_count)
{
    uint64_t count;

    if (text_to_u64(text, &count) || !count || count > 65536)
        return false;
    *ret_count = (unsigned)count;
    return true;
}

int run_limits_check(const struct run_limits *limits)
{
    uint64_t bytes;
    unsigned count;
    uint32_t class, isolation;
    char share[16];

    if (limits->sm && limits->sms)
        return cli_usage("--sm and --sms set the same share: use one of them");
    if (limits->sm && !parse_share(limits->sm, share))
        return cli_usage("--sm takes a percentage above 0 and at most 100, not %s", limits->sm);
    if (limits->sms && !parse_count(limits->sms, &count))
        return cli_usage("--sms takes a number of multiprocessors, not %s", limits->sms);
    if (limits->memory && grammar_memory(limits->memory, &bytes))
        return cli_usage("--memory takes a size such as 512M or 2G, not %s", limits->memory);
    if (limits->priority && strcmp(limits->priority, "0") && strcmp(limits->priority, "1"))
        return cli_usage("--priority is 0 (normal) or 1 (below normal), not %s", limits->priority);
    if (limits->class && !client_class_parse(limits->class, &class))
        return cli_usage("--class is " CLASS_EXPECTED ", not %s", limits->class);
    if (limits->isolation && !isolation_parse(limits->isolation, &isolation))
        return cli_usage("--isolate is " ISOLATION_EXPECTED ", not %s", limits->isolation);
    return 0;
}

/* ---- a number of multiprocessors as a percentage ---- */

/* How many each device has: 0 without any device, UINT_MAX where devices differ. */
static unsigned common_sm_count(const struct snapshot *snapshot)
{
    unsigned common = 0;

    for (unsigned i = 0; i < snapshot->server_count; i++)
        for (unsigned d = 0; d < snapshot->servers[i].device_count; d++) {
            unsigned count = snapshot->servers[i].devices[d].sm_count;

            common = common && common != count ? UINT_MAX : count;
        }
    return common;
}

/* A daemon without a server does not know the devices yet, and starts one. */
static int find_sm_count(int fd, unsigned *ret_count)
{
    struct snapshot snapshot;

    *ret_count = 0;
    for (int i = 0; i < 2 && !*ret_count; i++) {
        int error = i && daemon_start_server(fd) ? -EIO : snapshot_read(fd, &snapshot);

        if (error)
            return i ? 1 : cli_fail("%s", command_lost(error));
        *ret_count = common_sm_count(&snapshot);
        snapshot_fini(&snapshot);
    }
    return 0;
}

/* Shares are rounded down to multiprocessors, so the percentage is rounded up. */
static int share_of_count(int fd, unsigned wanted, char ret_number[16])
{
    unsigned total, share;

    if (find_sm_count(fd, &total))
        return 1;
    if (total == UINT_MAX || !total)
        return cli_fail("the devices differ in their multiprocessors; give a percentage: --sm");
    if (wanted > total)
        return cli_fail("no device has %u multiprocessors: the largest has %u", wanted, total);
    share = (wanted * 10000 + total - 1) / total;
    text_format(ret_number, 16, "%u.%02u", share / 100, share % 100);
    return 0;
}

/* ---- the environment ---- */

/* "0=2G,1=2G" and so on for each device that a program may have. */
static int set_memory(const char *size)
{
    char list[HELLO_MAX_DEVICES * 32] = "";

    for (unsigned i = 0; i < HELLO_MAX_DEVICES; i++) {
        size_t used = strlen(list);

        if (!text_format(list + used, sizeof(list) - used, "%s%u=%s", i ? "," : "", i, size))
            return cli_usage("--memory: %s is too long", size);
    }
    return setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", list, 1)
               ? cli_fail("cannot set the environment: %s", strerror(errno))
               : 0;
}

int run_limits_set_lane(const struct run_limits *limits)
{
    return (limits->class && setenv("FUNNEL_CLASS", limits->class, 1)) ||
                   (limits->isolation && setenv("FUNNEL_ISOLATE", limits->isolation, 1))
               ? cli_fail("cannot set the environment: %s", strerror(errno))
               : 0;
}

int run_limits_set(const struct run_limits *limits, int fd)
{
    unsigned count = 0;
    char share[16] = "";
    int status = 0;

    if (limits->sm)
        parse_share(limits->sm, share);
    else if (limits->sms && parse_count(limits->sms, &count))
        status = share_of_count(fd, count, share);
    if (!status && limits->memory)
        status = set_memory(limits->memory);
    if (status)
        return status;
    if ((*share && setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", share, 1)) ||
        (limits->priority && setenv("CUDA_MPS_CLIENT_PRIORITY", limits->priority, 1)) ||
        (limits->shows_limit && setenv("FUNNEL_SHOW_LIMIT", "1", 1)))
        return cli_fail("cannot set the environment: %s", strerror(errno));
    return 0;
}
