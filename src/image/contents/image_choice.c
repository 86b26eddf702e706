/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the headers of the parts, and expands no part. */
#include "image_choice.h"

#include "image_bundle.h"

struct search {
    struct image_choice choice;
    bool found;
};

static bool device_runs(unsigned device_sm, const struct image_part *part)
{
    if (part->is_specific)
        return part->sm == device_sm;
    if (part->is_of_family || (part->kind == IMAGE_ELF && part->sm))
        return part->sm / 10 == device_sm / 10 && part->sm <= device_sm;
    return part->sm <= device_sm;
}

static bool is_better(const struct search *search, const struct image_part *part)
{
    if (!search->found || part->kind != search->choice.kind)
        return !search->found || part->kind == IMAGE_ELF;
    return part->sm > search->choice.sm;
}

/* Wants no part. */
static bool consider(void *context, const struct image_part *part)
{
    struct search *search = context;

    if (device_runs(search->choice.device_sm, part) && is_better(search, part)) {
        search->found = true;
        search->choice.kind = part->kind;
        search->choice.sm = part->sm;
    }
    return false;
}

bool image_choose(const void *bytes, size_t size, unsigned device_sm,
                  struct image_choice *ret_choice)
{
    struct search search = {.choice.device_sm = device_sm};
    const struct image_visit visit = {.wants = consider, .context = &search};

    if (image_is_bundle(bytes, size) || image_any_part(bytes, size, &visit) || !search.found)
        return false;
    *ret_choice = search.choice;
    return true;
}

bool image_is_chosen(const struct image_choice *choice, const struct image_part *part)
{
    return part->kind == choice->kind && part->sm == choice->sm &&
           device_runs(choice->device_sm, part);
}
