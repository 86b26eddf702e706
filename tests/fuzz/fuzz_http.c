/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the head of a request to the page: what is taken from it fits its fields. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "http_parse.h"
#include "text.h"

static void check(const struct http_request *request)
{
    uint64_t value;

    if (*request->path != '/' || !text_ended(request->path, sizeof(request->path)) ||
        !text_ended(request->query, sizeof(request->query)) ||
        !text_ended(request->token, sizeof(request->token)) ||
        !text_ended(request->host, sizeof(request->host)))
        abort();
    if (!http_query_number(request, "id", &value) && !http_query_has(request, "id"))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* a sanitizer sees what is read behind it */
    struct http_request request = {0};

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    int status = http_parse(text, size, &request);
    if (status == 0)
        check(&request);
    else if (status < 400 || status > 499)
        abort();
    free(text);
    return 0;
}
