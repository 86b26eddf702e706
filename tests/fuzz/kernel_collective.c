/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements that a warp's lanes execute together: shuffles, votes, matches, reductions. Outside of
 * branches all lanes come; in a branch those that a ballot before it found.
 */
#include "kernel_text.h"

static void write_vote(struct builder *builder, const char *mask)
{
    static const char *const modes[] = {"all", "any", "uni"};
    const char *from = condition(builder), *mode = PICK(builder, modes);
    if (chance(builder, 2))
        say(builder, "vote.sync.ballot.b32 %s, %s, %s;", any_register(builder), from, mask);
    else
        say(builder, "vote.sync.%s.pred %s, %s, %s;", mode, predicate(builder), from, mask);
}

static void write_match(struct builder *builder, const char *mask)
{
    const char *type = chance(builder, 3) ? "b64" : "b32";
    const char *from = register_for(builder, type), *to = any_register(builder);
    /* Few different values, or there is nothing to match. */
    if (chance(builder, 2)) {
        say(builder, "and.%s %%t%s, %s, %u;", type, type + 1, from, 1 + pick(builder, 7));
        from = text_of("%%t%s", type + 1);
    }
    if (chance(builder, 2))
        say(builder, "match.any.sync.%s %s, %s, %s;", type, to, from, mask);
    else
        say(builder, "match.all.sync.%s %s|%s, %s, %s;", type, to, predicate(builder), from, mask);
}

static void write_reduction(struct builder *builder, const char *mask)
{
    static const char *const operations[] = {"add.u32", "min.u32", "max.u32", "add.s32", "min.s32",
                                             "max.s32", "and.b32", "or.b32",  "xor.b32"};
    const char *operation = PICK(builder, operations), *to = any_register(builder);
    say(builder, "redux.sync.%s %s, %s, %s;", operation, to, any_register(builder), mask);
}

/* From the highest lane of the mask, which is there. */
static void write_shuffle_from_highest(struct builder *builder, const char *mask)
{
    const char *to = any_register(builder), *from = any_register(builder);
    say(builder, "bfind.u32 %%t32, %s;", mask);
    say(builder, "shfl.sync.idx.b32 %s|%s, %s, %%t32, 31, %s;", to, predicate(builder), from, mask);
}

/* Of a whole warp, so every source lane is there. */
static void write_shuffle(struct builder *builder)
{
    static const char *const modes[] = {"up", "down", "bfly", "idx"};
    unsigned mode = pick(builder, 4);
    unsigned segment = (32 - (1u << pick(builder, 6))) << 8;
    const char *to = any_register(builder), *from = any_register(builder);
    const char *lane =
        chance(builder, 2) ? any_register(builder) : text_of("%u", pick(builder, 32));
    const char *found = chance(builder, 2) ? text_of("|%s", predicate(builder)) : "";
    say(builder, "shfl.sync.%s.b32 %s%s, %s, %s, 0x%x, 0xffffffff;", modes[mode], to, found, from,
        lane, segment | (mode ? 31 : 0));
}

static void write_one(struct builder *builder, const char *mask)
{
    switch (pick(builder, 4)) {
    case 0:
        write_vote(builder, mask);
        break;
    case 1:
        write_match(builder, mask);
        break;
    case 2:
        write_reduction(builder, mask);
        break;
    default:
        write_shuffle_from_highest(builder, mask);
    }
}

/* Only lanes where a predicate holds come. */
static void write_in_branch(struct builder *builder)
{
    unsigned label = builder->labels++;
    say(builder, "mov.pred %%chosen, %s;", predicate(builder));
    say(builder, "vote.sync.ballot.b32 %%some, %%chosen, %s;", warp_mask(builder));
    say(builder, "@!%%chosen bra L%u;", label);
    for (unsigned i = 1 + pick(builder, 2); i > 0; i--)
        write_one(builder, "%some");
    say(builder, "L%u:\nbar.warp.sync %s;", label, warp_mask(builder));
}

/* Threads of the whole block decide together. */
static void write_block_vote(struct builder *builder)
{
    const char *from = predicate(builder), *mode = chance(builder, 2) ? "and" : "or";
    say(builder, "bar.warp.sync %s;", warp_mask(builder));
    if (chance(builder, 2))
        say(builder, "bar.red.popc.u32 %s, 0, %s;", any_register(builder), from);
    else
        say(builder, "bar.red.%s.pred %s, 0, %s;", mode, predicate(builder), from);
}

void write_collective(struct builder *builder)
{
    unsigned kind = pick(builder, 8);
    if (kind < 3 && builder->threads % 32 == 0)
        write_shuffle(builder);
    else if (kind < 5)
        write_one(builder, warp_mask(builder));
    else if (kind < 7)
        write_in_branch(builder);
    else
        write_block_vote(builder);
}
