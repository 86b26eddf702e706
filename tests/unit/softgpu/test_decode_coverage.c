/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docs/softgpu-opcodes.md says what the decoder's table says. With --write it is made again.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "coverage.h"

static void test_document(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    coverage_write(memory);
    fclose(memory);
    char *checked_in = calloc(1, size + 2);
    FILE *file = fopen(COVERAGE_DOCUMENT, "r");
    assert_non_null(file);
    size_t length = fread(checked_in, 1, size + 1, file);
    fclose(file);
    if (length != size || memcmp(text, checked_in, size) != 0)
        fail_msg("%s is not what the table says: run this test with --write", COVERAGE_DOCUMENT);
    free(checked_in);
    free(text);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--write") == 0) {
        FILE *file = fopen(COVERAGE_DOCUMENT, "w");
        if (!file)
            return 1;
        coverage_write(file);
        return fclose(file) != 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_document)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
