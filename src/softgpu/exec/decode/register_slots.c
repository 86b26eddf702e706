/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A register shares its slot when all its uses lie between two labels that are branched to. The
 * first use must write it for every lane and not read it. A lane that comes to the place then comes
 * from above, and has no use for the register when it leaves. Lanes that are elsewhere keep their
 * own part of the slot.
 *
 * Registers of functions that are called do not share: a caller may have a part in them.
 *
 * A slot is free again behind the last use, not at it: an instruction's results never lie over its
 * sources, unless the text says so.
 */
#include "register_slots.h"

#include <stdlib.h>
#include <string.h>

#define WIDTHS 3
#define NONE UINT32_MAX

/* Of one register. */
struct use {
    uint32_t first, last; /* instructions; NONE: nothing uses it */
    uint32_t next;        /* in the list that it is in, or NONE */
    uint32_t next_start;  /* of those that begin at the same instruction */
    bool shares;
};

/* Of one instruction. */
struct place {
    bool is_target;        /* something branches here */
    uint32_t region;       /* the last target up to here */
    uint32_t starts, ends; /* registers that share; NONE: there are none */
};

struct search {
    const struct ptx_function *function;
    struct use *uses;
    struct place *places;
    uint32_t idle[WIDTHS]; /* registers whose slots are free, or NONE */
};

unsigned register_width(enum ptx_type type)
{
    return type == PTX_PRED ? 2 : ptx_type_size(type) <= 4 ? 1 : 0;
}

/* ---- where labels are ---- */

static void mark_label(struct search *search, const struct ptx_operand *operand)
{
    const struct ptx_symbol *symbol = operand->kind == PTX_OPERAND_SYMBOL ? operand->symbol : NULL;
    bool is_table = symbol && symbol->kind == PTX_BRANCH_TARGETS;

    if (symbol && symbol->kind == PTX_LABEL && symbol->target < search->function->instruction_count)
        search->places[symbol->target].is_target = true;
    for (uint32_t i = 0; is_table && i < symbol->targets.count; i++)
        mark_label(search, &symbol->targets.labels[i]);
}

static void mark_labels(struct search *search)
{
    for (uint32_t i = 0; i < search->function->instruction_count; i++) {
        const struct ptx_instruction *instruction = &search->function->instructions[i];

        for (uint32_t j = 0; j < instruction->operand_count; j++)
            mark_label(search, &instruction->operands[j]);
    }
}

/* ---- where registers are used ---- */

static bool is_one_of(const char *opcode, const char *const *words, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (*opcode == *words[i] && strncmp(opcode, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}
#define IS_ONE_OF(opcode, words) is_one_of(opcode, words, sizeof(words) / sizeof(*(words)))

/* Whether the instruction writes its first operand as a whole. Parameters that are loaded once are
 * in their place from the start (fixed_registers.h). A wgmma adds to its destination, and video
 * instructions that write a part keep the rest. */
static bool writes_first(const struct ptx_instruction *instruction)
{
    static const char *const others[] = {"ld.param", "wgmma", "call",      "v",
                                         "brx",      "bar",   "nanosleep", "stackrestore"};
    static const char *const of_lists[] = {"ld", "mov", "mma", "wmma", "tex", "tld4"};
    static const char *const of_pairs[] = {"shfl"};
    const char *opcode = instruction->opcode;

    if (instruction->guard >= 0 || !instruction->operand_count || IS_ONE_OF(opcode, others))
        return false;
    switch (instruction->operands[0].kind) {
    case PTX_OPERAND_REGISTER:
        return true;
    case PTX_OPERAND_LIST:
        return IS_ONE_OF(opcode, of_lists);
    case PTX_OPERAND_PAIR:
        return IS_ONE_OF(opcode, of_pairs);
    default:
        return false;
    }
}

static void note_use(struct search *search, uint32_t reg, uint32_t at, bool is_written)
{
    struct use *use = &search->uses[reg];

    if (use->first == NONE) {
        use->first = at;
        use->shares = is_written;
    }
    use->last = at;
}

static void note_all(struct search *search, const struct ptx_operand *operand, uint32_t at,
                     bool is_written)
{
    if (operand->kind == PTX_OPERAND_REGISTER)
        note_use(search, operand->reg, at, is_written);
    for (uint32_t i = 0; i < operand->count && operand->elements; i++)
        note_all(search, &operand->elements[i], at, is_written);
}

/* Sources first: what is read and written at once does not begin with a write. */
static void note_instruction(struct search *search, uint32_t at)
{
    const struct ptx_instruction *instruction = &search->function->instructions[at];
    bool writes = writes_first(instruction);

    if (instruction->guard >= 0)
        note_use(search, (uint32_t)instruction->guard, at, false);
    for (uint32_t j = instruction->operand_count; j-- > 0;)
        note_all(search, &instruction->operands[j], at, writes && j == 0);
}

static void note_uses(struct search *search)
{
    uint32_t region = 0;

    for (uint32_t at = 0; at < search->function->instruction_count; at++) {
        if (search->places[at].is_target)
            region = at;
        search->places[at].region = region;
        note_instruction(search, at);
    }
}

static bool can_share(const struct search *search, uint32_t reg)
{
    const struct use *use = &search->uses[reg];
    enum ptx_type type = search->function->registers[reg].type;

    return search->function->is_entry && use->first != NONE && use->shares && type != PTX_PRED &&
           type != PTX_B128 &&
           search->places[use->first].region == search->places[use->last].region;
}

static void list_uses(struct search *search)
{
    for (uint32_t i = 0; i < search->function->register_count; i++) {
        struct use *use = &search->uses[i];

        use->shares = can_share(search, i);
        if (!use->shares)
            continue;
        use->next_start = search->places[use->first].starts;
        search->places[use->first].starts = i;
        use->next = search->places[use->last].ends;
        search->places[use->last].ends = i;
    }
}

/* ---- slots ---- */

static void give_own_slots(const struct search *search, struct register_slots *slots)
{
    for (uint32_t i = 0; i < search->function->register_count; i++) {
        enum ptx_type type = search->function->registers[i].type;
        uint32_t *count = &slots->counts[register_width(type)];

        if (search->uses[i].shares || search->uses[i].first == NONE)
            continue;
        slots->slot[i] = *count;
        *count += type == PTX_B128 ? 2 : 1;
    }
}

static void take_slot(struct search *search, struct register_slots *slots, uint32_t reg)
{
    unsigned width = register_width(search->function->registers[reg].type);
    uint32_t idle = search->idle[width];

    if (idle == NONE) {
        slots->slot[reg] = slots->counts[width]++;
        return;
    }
    search->idle[width] = search->uses[idle].next;
    slots->slot[reg] = slots->slot[idle];
}

static void free_slots(struct search *search, uint32_t ends)
{
    for (uint32_t next; ends != NONE; ends = next) {
        unsigned width = register_width(search->function->registers[ends].type);

        next = search->uses[ends].next;
        search->uses[ends].next = search->idle[width];
        search->idle[width] = ends;
    }
}

static void give_shared_slots(struct search *search, struct register_slots *slots)
{
    for (uint32_t at = 0; at < search->function->instruction_count; at++) {
        for (uint32_t reg = search->places[at].starts; reg != NONE;
             reg = search->uses[reg].next_start)
            take_slot(search, slots, reg);
        free_slots(search, search->places[at].ends);
    }
}

static bool search_init(struct search *search, const struct ptx_function *function)
{
    *search = (struct search){
        .function = function,
        .uses = malloc((function->register_count + 1) * sizeof(*search->uses)),
        .places = malloc((function->instruction_count + 1) * sizeof(*search->places)),
        .idle = {NONE, NONE, NONE},
    };
    if (!search->uses || !search->places)
        return false;
    for (uint32_t i = 0; i < function->register_count; i++)
        search->uses[i] = (struct use){NONE, NONE, NONE, NONE, false};
    for (uint32_t i = 0; i < function->instruction_count; i++)
        search->places[i] = (struct place){false, 0, NONE, NONE};
    return true;
}

bool register_slots_init(struct register_slots *slots, const struct ptx_function *function)
{
    struct search search;
    bool has_memory = search_init(&search, function);

    *slots =
        (struct register_slots){.slot = calloc(function->register_count + 1, sizeof(*slots->slot))};
    has_memory &= slots->slot != NULL;
    if (has_memory) {
        mark_labels(&search);
        note_uses(&search);
        list_uses(&search);
        give_own_slots(&search, slots);
        give_shared_slots(&search, slots);
    }
    free(search.uses);
    free(search.places);
    return has_memory;
}

void register_slots_fini(struct register_slots *slots)
{
    free(slots->slot);
}
