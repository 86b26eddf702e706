/* SPDX-License-Identifier: Apache-2.0 */
/* See usage_period.h. */
#include "usage_period.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* More of a unit than a century has of minutes. */
#define UNITS_MAX 60000000

static int64_t seconds_of_unit(char unit)
{
    switch (unit) {
    case 'm':
        return 60;
    case 'h':
        return 3600;
    case 'd':
        return 86400;
    case 'w':
        return 7 * 86400;
    default:
        return 0;
    }
}

static bool parse_age(const char *text, int64_t *ret_seconds)
{
    char *end;
    long count = strtol(text, &end, 10);
    int64_t unit = seconds_of_unit(*end);

    if (*text < '0' || *text > '9' || !unit || end[1] || count < 0 || count > UNITS_MAX)
        return false;
    *ret_seconds = count * unit;
    return true;
}

static bool parse_day(const char *text, int64_t *ret_time)
{
    struct tm day = {.tm_isdst = -1}, asked;
    const char *end = strptime(text, "%Y-%m-%d", &day);
    time_t time;

    if (!end || *end)
        return false;
    asked = day;
    time = mktime(&day);
    *ret_time = time;
    return time >= 0 && day.tm_mday == asked.tm_mday && day.tm_mon == asked.tm_mon;
}

bool usage_time_parse(const char *text, int64_t now, int64_t *ret_time)
{
    int64_t age;

    if (!parse_age(text, &age))
        return parse_day(text, ret_time);
    *ret_time = now > age ? now - age : 0;
    return true;
}
