/* SPDX-License-Identifier: Apache-2.0 */
/* See grammar.h. A grammar becomes a few slots; the words of a command then fill them. */
#include "grammar.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "text.h"

#define SLOTS_MAX 16

struct slot {
    char option[32]; /* "" for a positional word */
    bool keyed;      /* --option=value */
    enum grammar_kind kind;
    bool optional;
    bool filled;
};

int grammar_split(char *line, char *ret_words[GRAMMAR_WORDS_MAX])
{
    char *rest = NULL;
    int count = 0;

    for (char *word = strtok_r(line, " \t\r\n", &rest); word;
         word = strtok_r(NULL, " \t\r\n", &rest)) {
        if (count == GRAMMAR_WORDS_MAX)
            return -E2BIG;
        ret_words[count++] = word;
    }
    return count;
}

/* ---- slots: a grammar, part by part ---- */

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " ");
}

/* Reads one slot, "[-t SECONDS]", "[--server=NAME]" or "SERVER"; returns the rest of the grammar.
 */
static const char *read_slot(const char *grammar, struct slot *slot)
{
    size_t length;

    memset(slot, 0, sizeof(*slot));
    slot->optional = *grammar == '[';
    grammar += slot->optional;
    length = strcspn(grammar, " ]=");
    if (*grammar == '-') {
        memcpy(slot->option, grammar, length);
        slot->keyed = grammar[length] == '=';
        grammar = skip_blanks(grammar + length + slot->keyed);
        length = strcspn(grammar, " ]");
    }
    slot->kind = grammar_kind_named(grammar, length);
    if (slot->kind != GRAMMAR_NOTHING)
        grammar += length;
    return skip_blanks(grammar + (*grammar == ']'));
}

static int read_grammar(const char *grammar, struct slot slots[SLOTS_MAX])
{
    int count = 0;

    for (grammar = skip_blanks(grammar); *grammar && count < SLOTS_MAX; count++)
        grammar = read_slot(grammar, &slots[count]);
    assert(!*grammar);
    return count;
}

/* ---- commands ---- */

static void set_flag(const char *option, struct grammar_values *values)
{
    values->force |= !strcmp(option, "-f") || !strcmp(option, "--force");
    values->mlopart |= !strcmp(option, "-mlopart");
    values->csv |= !strcmp(option, "--csv");
    values->all |= !strcmp(option, "--all");
}

/* "-f", but not "-5": that is a value, though a wrong one. */
static bool looks_like_option(const char *word)
{
    return word[0] == '-' && !(word[1] >= '0' && word[1] <= '9');
}

/* The value in "--key=value" or "key=value", or NULL when the word is not of this option. */
static const char *keyed_value(const struct slot *slot, const char *word)
{
    const char *key = slot->option + strlen("--");
    size_t length = strlen(key);

    if (!slot->keyed)
        return NULL;
    word += text_starts_with(word, "--") ? strlen("--") : 0;
    return !strncmp(word, key, length) && word[length] == '=' ? word + length + 1 : NULL;
}

/* "-client" means "--client". */
static bool is_option(const struct slot *slot, const char *word)
{
    return !strcmp(slot->option, word) ||
           (text_starts_with(slot->option, "--") && slot->kind != GRAMMAR_NOTHING &&
            !strcmp(slot->option + 1, word));
}

/* A word fills the option of that name, else the next positional slot that is free. */
static struct slot *slot_for(struct slot slots[], int count, const char *word)
{
    for (int i = 0; i < count; i++)
        if (!slots[i].filled && *slots[i].option &&
            (slots[i].keyed ? keyed_value(&slots[i], word) != NULL : is_option(&slots[i], word)))
            return &slots[i];
    for (int i = 0; i < count && !looks_like_option(word); i++)
        if (!slots[i].filled && !*slots[i].option)
            return &slots[i];
    return NULL;
}

/* The message about an invalid `word`. That about a priority is NVIDIA's own. */
static void explain_value(enum grammar_kind kind, const char *word, char *reason)
{
    if (kind == GRAMMAR_PRIORITY)
        text_copy(reason, GRAMMAR_REASON_MAX, "Invalid priority value - must be 0 or 1!");
    else
        text_format(reason, GRAMMAR_REASON_MAX, "Invalid value \"%.64s\": expected %s", word,
                    grammar_value_of(kind)->expected);
}

static int explain_usage(const char *name, const char *grammar, const char *what, char *reason)
{
    text_format(reason, GRAMMAR_REASON_MAX, "%s, usage: %s %s", what, name, grammar);
    return -EINVAL;
}

int grammar_parse(const char *name, const char *grammar, char *const words[], int count,
                  struct grammar_values *ret_values, char ret_reason[GRAMMAR_REASON_MAX])
{
    struct slot slots[SLOTS_MAX];
    int slot_count = read_grammar(grammar, slots);
    struct grammar_values values = {0};

    for (int i = 0; i < count; i++) {
        struct slot *slot = slot_for(slots, slot_count, words[i]);
        const struct grammar_value *kind;
        const char *word;

        if (!slot)
            return explain_usage(name, grammar, "Too many or unknown arguments", ret_reason);
        slot->filled = true;
        set_flag(slot->option, &values);
        if (slot->kind == GRAMMAR_NOTHING)
            continue;
        if (*slot->option && !slot->keyed && ++i == count)
            return explain_usage(name, grammar, "Missing argument", ret_reason);
        kind = grammar_value_of(slot->kind);
        word = slot->keyed ? keyed_value(slot, words[i]) : words[i];
        if (kind->parse(kind, word, &values)) {
            explain_value(slot->kind, word, ret_reason);
            return -EINVAL;
        }
        values.given |= 1ull << slot->kind;
    }
    for (int i = 0; i < slot_count; i++)
        if (!slots[i].filled && !slots[i].optional)
            return explain_usage(name, grammar, "Missing argument", ret_reason);
    *ret_values = values;
    return 0;
}

void grammar_describe(const char *grammar, void (*line)(void *context, const char *text),
                      void *context)
{
    struct slot slots[SLOTS_MAX];
    int count = read_grammar(grammar, slots);

    for (int i = 0; i < count; i++) {
        const struct slot *slot = &slots[i];
        const struct grammar_value *kind = grammar_value_of(slot->kind);
        const char *between = !*slot->option || !*kind->name ? "" : slot->keyed ? "=" : " ";
        char words[64], text[192];

        text_format(words, sizeof(words), "%s%s%s", slot->option, between, kind->name);
        text_format(text, sizeof(text), "  %-36s%s%s", words,
                    *kind->name ? kind->expected : "a switch",
                    slot->optional ? "; may be left out" : "");
        line(context, text);
    }
}
