/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opcodes taken apart: "ld.global.v2.u32" into ld, global, v2, u32.
 */
#include "tokens.h"

#include <string.h>

bool tokens_split(const char *opcode, struct tokens *ret_tokens)
{
    struct tokens tokens = {0};
    for (;;) {
        size_t length = strcspn(opcode, ".");
        if (tokens.count == MAX_TOKENS || length == 0)
            return false;
        tokens.text[tokens.count] = opcode;
        tokens.length[tokens.count++] = length;
        opcode += length;
        if (!*opcode)
            break;
        opcode++;
    }
    *ret_tokens = tokens;
    return true;
}

bool token_is(const struct tokens *tokens, unsigned index, const char *word)
{
    return index < tokens->count && tokens->length[index] == strlen(word) &&
           memcmp(tokens->text[index], word, tokens->length[index]) == 0;
}

bool token_starts(const struct tokens *tokens, unsigned index, const char *word)
{
    size_t length = strlen(word);
    return index < tokens->count && tokens->length[index] >= length &&
           memcmp(tokens->text[index], word, length) == 0;
}

int token_find(const struct tokens *tokens, const char *word)
{
    for (unsigned i = 1; i < tokens->count; i++) {
        if (token_is(tokens, i, word))
            return (int)i;
    }
    return -1;
}

int token_rounding(const struct tokens *tokens, unsigned index)
{
    static const char *const names[] = {"rn", "rz", "rm", "rp"};
    for (int rounding = 0; rounding < 4; rounding++) {
        if (token_is(tokens, index, names[rounding]))
            return rounding;
    }
    return -1;
}

enum ptx_type token_type(const struct tokens *tokens, unsigned index)
{
    return ptx_type_from_name(tokens->text[index], tokens->length[index]);
}

enum ptx_type last_type(const struct tokens *tokens)
{
    return token_type(tokens, tokens->count - 1);
}
