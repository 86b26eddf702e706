/* SPDX-License-Identifier: Apache-2.0 */
/* See decode_video.h. */
#include "decode_video.h"

#include <string.h>

#include "operand.h"
#include "video.h"

struct word {
    const char *name;
    enum video_op op;
};

static int find_word(const struct word *words, unsigned count, const char *text, size_t length)
{
    for (unsigned i = 0; i < count; i++) {
        if (strlen(words[i].name) == length && memcmp(words[i].name, text, length) == 0)
            return (int)words[i].op;
    }
    return -1;
}

static int operation(const struct tokens *tokens)
{
    static const struct word names[] = {
        {"vadd", VIDEO_ADD}, {"vsub", VIDEO_SUB}, {"vavrg", VIDEO_AVERAGE},
        {"vmin", VIDEO_MIN}, {"vmax", VIDEO_MAX}, {"vabsdiff", VIDEO_DIFFERENCE},
    };
    static const struct word comparisons[] = {{"eq", VIDEO_EQ}, {"ne", VIDEO_NE}, {"lt", VIDEO_LT},
                                              {"le", VIDEO_LE}, {"gt", VIDEO_GT}, {"ge", VIDEO_GE}};
    if (token_starts(tokens, 0, "vset"))
        return tokens->count < 4 ? -1
                                 : find_word(comparisons, 6, tokens->text[3], tokens->length[3]);
    return find_word(names, 6, tokens->text[0], tokens->length[0] - 1);
}

/* One flag for each of the types that begin at `first`; -1 for another type. */
static int signs(const struct tokens *tokens, unsigned first, unsigned count)
{
    int flags = 0;
    for (unsigned i = 0; i < count; i++) {
        enum ptx_type type =
            first + i < tokens->count ? token_type(tokens, first + i) : PTX_NO_TYPE;
        if (type != PTX_U32 && type != PTX_S32)
            return -1;
        if (type == PTX_S32)
            flags |= VIDEO_SIGNED_D << (3 - count + i);
    }
    return flags;
}

void decode_video(struct builder *builder, const struct tokens *tokens)
{
    bool is_set = token_starts(tokens, 0, "vset");
    int op = operation(tokens);
    int flags = signs(tokens, 1, is_set ? 2 : 3);
    if (op < 0 || flags < 0) {
        decode_unsupported(builder);
        return;
    }
    for (unsigned i = 4; i < tokens->count; i++) {
        if (token_is(tokens, i, "sat") && !is_set) {
            flags |= VIDEO_SATURATES;
        } else if (token_is(tokens, i, "add")) {
            flags |= VIDEO_SUMS;
        } else {
            decode_unsupported(builder);
            return;
        }
    }
    uint32_t sources[3];
    for (unsigned i = 0; i < 3; i++)
        sources[i] = operand_source(builder, operand_at(builder, i + 1), PTX_B32);
    uint32_t to = operand_destination(builder, operand_at(builder, 0), PTX_B32);
    struct insn *insn = builder_emit(builder, run_video);
    insn->d = to;
    insn->a = sources[0];
    insn->b = sources[1];
    insn->c = sources[2];
    insn->mode = (uint8_t)op;
    insn->flags = (uint8_t)flags;
    insn->width = tokens->text[0][tokens->length[0] - 1] == '2' ? 2 : 4;
}
