/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the entry a device runs: the newest PTX that it is able to run. PTX made for exactly one
 * architecture (sm_90a) or one family (sm_100f) runs nowhere else.
 */
#include "fatbin.h"

#include <errno.h>
#include <stdio.h>

static bool device_runs(const struct fatbin_entry *entry, unsigned sm)
{
    if (entry->kind != FATBIN_PTX)
        return false;
    if (entry->flags & FATBIN_ARCH_SPECIFIC)
        return entry->sm == sm;
    if (entry->flags & FATBIN_FAMILY_SPECIFIC)
        return entry->sm / 10 == sm / 10 && entry->sm <= sm;
    return entry->sm <= sm;
}

static bool is_better(const struct fatbin_entry *entry, const struct fatbin_entry *best)
{
    if (entry->sm != best->sm)
        return entry->sm > best->sm;
    return (entry->flags & FATBIN_ARCH_SPECIFIC) > (best->flags & FATBIN_ARCH_SPECIFIC);
}

struct survey {
    unsigned newest_ptx;
    unsigned newest_machine_code;
};

static void survey_add(struct survey *survey, const struct fatbin_entry *entry)
{
    if (entry->kind == FATBIN_PTX && entry->sm > survey->newest_ptx)
        survey->newest_ptx = entry->sm;
    if (entry->kind != FATBIN_PTX && entry->sm > survey->newest_machine_code)
        survey->newest_machine_code = entry->sm;
}

static void explain(const struct survey *survey, unsigned sm, struct fatbin_reason *reason)
{
    if (survey->newest_ptx)
        snprintf(reason->text, sizeof(reason->text),
                 "the program's PTX is for sm_%u, which a device of sm_%u does not run",
                 survey->newest_ptx, sm);
    else if (survey->newest_machine_code)
        snprintf(
            reason->text, sizeof(reason->text),
            "the program holds machine code for sm_%u and no PTX, which the software GPU needs",
            survey->newest_machine_code);
    else
        snprintf(reason->text, sizeof(reason->text), "the program's fat binary is empty");
}

int fatbin_select(const void *bytes, size_t size, unsigned sm, struct fatbin_entry *ret_entry,
                  struct fatbin_reason *reason)
{
    struct fatbin_walk walk;
    struct fatbin_entry entry, best = {0};
    struct survey survey = {0};
    int more = fatbin_walk_init(&walk, bytes, size);

    if (more == 0)
        more = fatbin_walk_next(&walk, &entry);
    for (; more > 0; more = fatbin_walk_next(&walk, &entry)) {
        survey_add(&survey, &entry);
        if (device_runs(&entry, sm) && (!best.kind || is_better(&entry, &best)))
            best = entry;
    }
    if (more < 0) {
        snprintf(reason->text, sizeof(reason->text), "the program's fat binary is malformed");
        return more;
    }
    if (!best.kind) {
        explain(&survey, sm, reason);
        return -ENOEXEC;
    }
    *ret_entry = best;
    return 0;
}
