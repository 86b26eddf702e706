/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the entry a device runs: the newest PTX that it is able to run. PTX made for exactly one
 * architecture (sm_90a) or one family (sm_100f) runs nowhere else.
 */
#include "fatbin.h"

#include <errno.h>
#include <stdio.h>

static bool device_runs(const struct image_entry *entry, unsigned sm)
{
    if (entry->kind != IMAGE_PTX)
        return false;
    if (entry->flags & IMAGE_ARCH_SPECIFIC)
        return entry->sm == sm;
    if (entry->flags & IMAGE_FAMILY_SPECIFIC)
        return entry->sm / 10 == sm / 10 && entry->sm <= sm;
    return entry->sm <= sm;
}

static bool is_better(const struct image_entry *entry, const struct image_entry *best)
{
    if (entry->sm != best->sm)
        return entry->sm > best->sm;
    return (entry->flags & IMAGE_ARCH_SPECIFIC) > (best->flags & IMAGE_ARCH_SPECIFIC);
}

struct offer {
    unsigned newest_ptx;
    unsigned newest_machine_code;
};

static void offer_add(struct offer *offer, const struct image_entry *entry)
{
    if (entry->kind == IMAGE_PTX && entry->sm > offer->newest_ptx)
        offer->newest_ptx = entry->sm;
    if (entry->kind != IMAGE_PTX && entry->sm > offer->newest_machine_code)
        offer->newest_machine_code = entry->sm;
}

static void explain_refusal(const struct offer *offer, unsigned sm, struct fatbin_reason *reason)
{
    if (offer->newest_ptx)
        snprintf(reason->text, sizeof(reason->text),
                 "the program's PTX is for sm_%u, which a device of sm_%u does not run",
                 offer->newest_ptx, sm);
    else if (offer->newest_machine_code)
        snprintf(
            reason->text, sizeof(reason->text),
            "the program holds machine code for sm_%u and no PTX, which the software GPU needs",
            offer->newest_machine_code);
    else
        snprintf(reason->text, sizeof(reason->text), "the program's fat binary is empty");
}

int fatbin_select(const void *bytes, size_t size, unsigned sm, struct image_entry *ret_entry,
                  struct fatbin_reason *reason)
{
    struct image_entries entries;
    struct image_entry entry, best = {0};
    struct offer offer = {0};
    int more = image_entries_open(&entries, bytes, size);

    if (more == 0)
        more = image_entries_next(&entries, &entry);
    for (; more > 0; more = image_entries_next(&entries, &entry)) {
        offer_add(&offer, &entry);
        if (device_runs(&entry, sm) && (!best.kind || is_better(&entry, &best)))
            best = entry;
    }
    if (more < 0) {
        snprintf(reason->text, sizeof(reason->text), "the program's fat binary is malformed");
        return more;
    }
    if (!best.kind) {
        explain_refusal(&offer, sm, reason);
        return -ENOEXEC;
    }
    *ret_entry = best;
    return 0;
}
