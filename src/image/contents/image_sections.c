/* SPDX-License-Identifier: Apache-2.0 */
/* The beginnings of the names that compilers give. */
#include "image_sections.h"

#include <string.h>

static const char *const harmless[] = {
    ".text.",        ".nv.info",      ".nv.shared.",    ".nv.constant0.", ".nv.constant2.",
    ".nv.callgraph", ".nv.prototype", ".rel.text.",     ".rela.text.",    ".rel.nv.constant0.",
    ".rel.debug_",   ".rela.debug_",  ".nv.rel.action", ".nv.compat",     ".symtab",
    ".strtab",       ".shstrtab",     ".debug_",        ".nv_debug_",     ".note.nv.",
};

bool image_section_is_harmless(const char *name)
{
    for (unsigned i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (!strncmp(name, harmless[i], strlen(harmless[i])))
            return true;
    }
    return *name == '\0';
}
