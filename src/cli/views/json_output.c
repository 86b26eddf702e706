/* SPDX-License-Identifier: Apache-2.0 */
#include "json_output.h"

#include <stdio.h>

#include "cli.h"

#ifdef HAVE_JANSSON
#include <jansson.h>

int json_output(struct json_t *json)
{
    if (!json)
        return cli_fail("cannot make JSON: out of memory");
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    putchar('\n');
    json_decref(json);
    return 0;
}

#else

int json_output(struct json_t *json)
{
    return cli_fail("this build has no JSON output: it was made without the jansson library");
}

#endif
