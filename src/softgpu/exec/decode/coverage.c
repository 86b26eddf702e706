/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opcode table as a document: what the decoder takes, opcode by opcode.
 */
#include "coverage.h"

#include <string.h>

#include "alu_table.h"
#include "opcodes.h"
#include "refused.h"

static const struct {
    unsigned modifier;
    const char *text;
} modifiers[] = {
    {MOD_FTZ, ".ftz"}, {MOD_ROUND, ".rn .rz .rm .rp"}, {MOD_ROUND_EVEN, ".rn"},
    {MOD_SAT, ".sat"}, {MOD_APPROX, ".approx"},        {MOD_CLAMPS, ".sat"},
};

/* The part of a row's name before its types. */
static size_t stem_length(const struct alu_row *row)
{
    return (size_t)(strrchr(row->name, '.') - row->name);
}

static bool same_stem(const struct alu_row *a, const struct alu_row *b)
{
    size_t length = stem_length(a);
    return length == stem_length(b) && memcmp(a->name, b->name, length) == 0;
}

static void write_dotted(FILE *file, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        fputc(text[i] == '_' ? '.' : text[i], file);
}

/* One line for all the types of an opcode; rows of one opcode need not be neighbors. */
static void write_stem(FILE *file, int first)
{
    unsigned allowed = 0;
    fputs("| `", file);
    write_dotted(file, alu_rows[first].name, stem_length(&alu_rows[first]));
    fputs("` |", file);
    for (int i = first; i < ALU_COUNT; i++) {
        if (!same_stem(&alu_rows[first], &alu_rows[i]))
            continue;
        const char *types = alu_rows[i].name + stem_length(&alu_rows[i]);
        fputc(' ', file);
        write_dotted(file, types + 1, strlen(types) - 1);
        allowed |= alu_rows[i].modifiers;
    }
    fputs(" |", file);
    for (unsigned i = 0; i < sizeof(modifiers) / sizeof(modifiers[0]); i++) {
        if (allowed & modifiers[i].modifier)
            fprintf(file, " %s", modifiers[i].text);
    }
    fputs(" |\n", file);
}

static bool seen_before(int row)
{
    for (int i = 0; i < row; i++) {
        if (same_stem(&alu_rows[i], &alu_rows[row]))
            return true;
    }
    return false;
}

void coverage_write(FILE *file)
{
    fputs("<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
          "# What the software GPU runs\n\nMade from the decoder's own opcode table. "
          "Anything else is refused when a module is loaded,\nwith the opcode, the PTX line and "
          "the function.\n\n"
          "| Opcode | Forms |\n| --- | --- |\n",
          file);
    const struct opcode *opcode;
    for (unsigned i = 0; (opcode = opcode_at(i)) != NULL; i++)
        fprintf(file, "| `%s` | `%s` |\n", opcode->name, opcode->forms);
    fputs(
        "\nComputations of each lane (for comparisons and selections any type of a width does):\n\n"
        "| Opcode | Types | Modifiers on some types |\n| --- | --- | --- |\n",
        file);
    for (int row = 0; row < ALU_COUNT; row++) {
        if (!seen_before(row))
            write_stem(file, row);
    }
    fputs("\nWhat PTX has and is refused:\n\n| Forms | Example |\n| --- | --- |\n", file);
    const struct refused *refused;
    for (unsigned i = 0; (refused = refused_at(i)) != NULL; i++)
        fprintf(file, "| %s | `%s` |\n", refused->forms, refused->opcode);
}
