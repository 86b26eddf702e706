/* SPDX-License-Identifier: Apache-2.0 */
/* See peer_identity.h. */
#include "peer_identity.h"

#include <string.h>
#include <time.h>

#include "grammar.h"
#include "text.h"

/* Arguments are joined by blanks, and what could move a cursor becomes '?'. */
static void make_readable(char *command, size_t length)
{
    while (length > 0 && command[length - 1] == '\0')
        length--;
    command[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if (command[i] == '\0')
            command[i] = ' ';
    text_make_printable(command);
}

static void copy_command(const struct hello *hello, char *command, size_t capacity)
{
    size_t length = sizeof(hello->command) < capacity ? sizeof(hello->command) : capacity - 1;

    memcpy(command, hello->command, length);
    if (!*command) {
        text_format(command, capacity, "%.*s", (int)sizeof(hello->program), hello->program);
        length = strlen(command);
    }
    make_readable(command, length);
}

void peer_identity_complete(struct server_identity *identity, const struct hello *hello)
{
    identity->since = time(NULL);
    copy_command(hello, identity->command, sizeof(identity->command));
    if (text_ended(hello->group, sizeof(hello->group)) && grammar_is_name(hello->group))
        text_copy(identity->group, sizeof(identity->group), hello->group);
}
