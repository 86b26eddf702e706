/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a configuration file: the parser returns a tree or names a line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "toml.h"

/* Every text of the tree is read to its end. */
static size_t walk(const struct toml *value)
{
    size_t size = value->key ? strlen(value->key) : 0;

    if (value->text)
        size += strlen(value->text);
    for (const struct toml *child = value->first; child; child = child->next)
        size += walk(child);
    return size;
}

/* So that no compiler leaves the reading out. */
static volatile size_t all_bytes;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char reason[TOML_REASON_MAX] = "";
    char *text = malloc(size + 1); /* a sanitizer sees what is read behind it */
    struct toml *root;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    int error = toml_parse(text, size, &root, reason);
    if (error && strncmp(reason, "line ", 5) && error != -ENOMEM)
        abort();
    if (!error) {
        all_bytes += walk(root);
        toml_free(root);
    }
    free(text);
    return 0;
}
