/* SPDX-License-Identifier: Apache-2.0 */
/* Prefixes of the names that compilers give. */
#include "image_sections.h"

#include <string.h>

static const char *const harmless[] = {
    ".text.",
    ".nv.info",
    ".nv.shared.",
    ".nv.constant0.",
    ".nv.constant2.",
    ".nv.callgraph",
    ".nv.prototype",
    ".rel.text.",
    ".rela.text.",
    ".rel.nv.constant0.",
    ".rel.debug_",
    ".rela.debug_",
    ".nv.rel.action",
    ".nv.compat",
    ".symtab",
    ".strtab",
    ".shstrtab",
    ".debug_",
    ".nv_debug_",
    ".note.nv.",
    /* Relocations of the compiler's own constants, such as addresses of its jump tables. */
    ".rel.nv.constant2.",
    ".rela.nv.constant0.",
    ".rela.nv.constant2.",
    /* Beside code for compute capability 10.0 and later: the same code in another form. */
    ".nv.capmerc.text.",
    ".nv.merc.debug_",
    ".nv.merc.nv.info",
    ".nv.merc.nv.shared.",
    ".nv.merc.rela.debug_",
    ".nv.merc.rela.text.",
    ".nv.merc.symtab",
};

bool image_section_is_harmless(const char *name)
{
    for (unsigned i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (!strncmp(name, harmless[i], strlen(harmless[i])))
            return true;
    }
    return *name == '\0';
}
