/* SPDX-License-Identifier: Apache-2.0 */
/* See recovery_rules.h. */
#include "recovery_rules.h"

#include <string.h>

#include "cuda_error.h"
#include "wire_calls.h"

enum recovery_rule recovery_rule(uint32_t op)
{
    switch ((enum wire_op)op) {
#define RULE(command, rule) \
    case WIRE_##command:    \
        return RECOVERY_##rule;
#include "recovery_rules.def"
#undef RULE
    }
    return RECOVERY_BINDS; /* a number of no command */
}

bool recovery_is_possible(CUresult error)
{
    if (error == CUDA_ERROR_ECC_UNCORRECTABLE || error == CUDA_ERROR_NVLINK_UNCORRECTABLE)
        return false;
    return error == CUDA_SUCCESS || cuda_error_is_fatal(error);
}

bool recovery_allows(const uint64_t used[CHANNEL_OPS / 64])
{
    for (uint32_t op = 0; op < CHANNEL_OPS; op++)
        if (used[op / 64] >> op % 64 & 1 && recovery_rule(op) == RECOVERY_BINDS)
            return false;
    return true;
}

bool recovery_may_ask_again(struct recovery_asked *asked, uint64_t now)
{
    uint64_t *oldest = &asked->at[asked->next];

    if (*oldest && now - *oldest < RECOVERY_ASKED_NS)
        return false;
    *oldest = now;
    asked->next = (asked->next + 1) % RECOVERY_ASKED_MAX;
    return true;
}

static uint32_t slot_bit(uint32_t kind)
{
    int slot = channel_kind_slot(kind);

    return slot == CHANNEL_NO_SLOT ? 0 : 1u << slot % 32;
}

/* The messages that are looked at, and the results so far. */
struct sift {
    uint32_t kept; /* bytes of messages to be sent again, at the front */
    unsigned work, ends;
    struct recovery_slots slots;
};

/* False when the message can be neither left out nor sent again. */
static bool sift_message(struct sift *sift, unsigned char *messages, uint32_t at,
                         const struct ring_message *header)
{
    enum recovery_rule rule = recovery_rule(channel_kind_op(header->kind));

    switch (rule) {
    case RECOVERY_WORK:
    case RECOVERY_ASKS:
        memmove(messages + sift->kept, messages + at, header->size);
        sift->kept += header->size;
        sift->work += rule == RECOVERY_WORK;
        sift->slots.sent_again |= slot_bit(header->kind);
        return true;
    case RECOVERY_REPEATS:
        sift->slots.repeated |= slot_bit(header->kind);
        return true;
    case RECOVERY_NEEDLESS:
        return true;
    case RECOVERY_ENDS:
        sift->ends++;
        return true;
    default:
        return false;
    }
}

bool recovery_sift(unsigned char *messages, uint32_t size, uint32_t *ret_size,
                   struct recovery_slots *ret_slots)
{
    struct sift sift = {0};
    struct ring_message header;

    for (uint32_t at = 0; at < size; at += header.size) {
        memcpy(&header, messages + at, sizeof(header));
        if (header.size < sizeof(header) || header.size > size - at ||
            !sift_message(&sift, messages, at, &header))
            return false;
    }
    *ret_size = sift.kept;
    *ret_slots = sift.slots;
    /* Work on an object that the program has ended since then cannot be done again. */
    return !sift.work || !sift.ends;
}
