/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that look into images, with code in them that an attacker might have brought there.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "image_reader.h"
#include "unit.h"

/* Without a filter, which a sanitizer does not bear. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_LIMITS false
#else
#define HAS_LIMITS true
#endif

#define SM 90
#define CPU_SECONDS 1

static const char text[] = ".version 8.0\n.visible .global .align 4 .u32 counter;\n"
                           ".const .align 8 .u64 table;\n.func f() {\ncall vprintf;\n}\n"
                           ".global .b8 $str[3] = {104, 105, 10};\n"
                           ".global .b8 $str$1[2] = {37, 100};\n";

static int ask(struct image_reader *reader, const char *image, struct image_facts *ret_facts)
{
    const struct image_source source = {.fd = -1, .bytes = image, .size = strlen(image)};
    struct image_question question;

    image_reader_begin(reader, &source, SM, &question);
    return image_reader_end(reader, &question, ret_facts);
}

/* ---- what an image makes a process do ---- */

static bool is(const void *bytes, const char *word)
{
    return !strncmp(bytes, word, strlen(word));
}

static void fill_pipe(void)
{
    static const char nonsense[1 << 16];

    for (int fd = 3; fd < 64; fd++)
        while (write(fd, nonsense, sizeof(nonsense)) > 0)
            ;
}

/* It touches none: that would take time of the CPU, which is limited, too. */
static void take_memory(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;

    while (mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED)
        ;
}

/* True: it could do something that it must not be able to. */
static bool break_out(void)
{
    return open("/etc/passwd", O_RDONLY) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ||
           fork() >= 0 || !kill(getppid(), 0) || execl("/bin/true", "true", (char *)NULL) >= 0 ||
           mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
               MAP_FAILED;
}

static void misbehave(const void *bytes, size_t size, unsigned sm, struct image_facts *ret_facts)
{
    volatile bool forever = true;

    *ret_facts = (struct image_facts){0};
    if (is(bytes, "crash"))
        __builtin_trap();
    while (is(bytes, "loop") && forever)
        ;
    if (is(bytes, "flood"))
        fill_pipe();
    if (is(bytes, "silence"))
        _exit(0);
    if (is(bytes, "memory"))
        take_memory();
    if (is(bytes, "break out"))
        ret_facts->prints = break_out();
    if (is(bytes, "."))
        image_facts_read(bytes, size, sm, ret_facts);
}

static int setup(void **state)
{
    struct image_reader *reader;

    assert_int_equal(image_reader_start(misbehave, CPU_SECONDS, &reader), 0);
    *state = reader;
    return 0;
}

static int teardown(void **state)
{
    image_reader_stop(*state);
    return 0;
}

/* ---- tests ---- */

static void check_facts(struct image_facts *facts)
{
    assert_true(facts->prints);
    assert_false(facts->allocates);
    assert_true(facts->has_variables);
    assert_true(facts->has_names);
    assert_int_equal(facts->names.count, 4);
    assert_string_equal(facts->names.names[2].name, "counter");
    assert_false(facts->names.names[2].constant);
    assert_string_equal(facts->names.names[3].name, "table");
    assert_true(facts->names.names[3].constant);
    assert_true(facts->has_strings);
    assert_int_equal(facts->strings.size, 7);
    assert_memory_equal(facts->strings.bytes, "hi\n\0%d", 7);
    image_facts_fini(facts);
}

static void assert_works(struct image_reader *reader)
{
    struct image_facts facts;

    assert_int_equal(ask(reader, text, &facts), 0);
    check_facts(&facts);
}

static void facts_come_back(void **state)
{
    struct image_facts facts;

    assert_works(*state);
    assert_works(NULL);
    assert_int_equal(ask(*state, ".plain", &facts), 0);
    assert_false(facts.prints || facts.allocates || facts.has_variables || facts.has_names ||
                 facts.has_strings);
}

static void a_crash_costs_one_image(void **state)
{
    struct image_facts facts;

    assert_int_equal(ask(*state, "crash", &facts), -EBADMSG);
    assert_works(*state);
}

static void an_endless_loop_costs_one_image(void **state)
{
    struct image_facts facts;

    assert_int_equal(ask(*state, "loop", &facts), -EBADMSG);
    assert_works(*state);
}

static void an_endless_answer_is_refused(void **state)
{
    struct image_facts facts;

    assert_int_equal(ask(*state, "flood", &facts), -EBADMSG);
    assert_works(*state);
}

static void no_answer_is_refused(void **state)
{
    struct image_facts facts;

    assert_int_equal(ask(*state, "silence", &facts), -EBADMSG);
    assert_works(*state);
}

static void memory_is_limited(void **state)
{
    struct image_facts facts;

    if (!HAS_LIMITS)
        skip();
    assert_int_equal(ask(*state, "memory", &facts), 0);
    image_facts_fini(&facts);
}

static void nothing_else_can_be_reached(void **state)
{
    struct image_facts facts;

    if (!HAS_LIMITS)
        skip();
    assert_int_equal(ask(*state, "break out", &facts), 0);
    assert_false(facts.prints);
}

static void *ask_often(void *reader)
{
    struct image_facts facts;

    for (unsigned i = 0; i < 20; i++)
        if (ask(reader, text, &facts) == 0)
            check_facts(&facts);
        else
            return reader;
    return NULL;
}

static void threads_may_ask_together(void **state)
{
    pthread_t threads[4];
    void *failed;

    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, *state), 0);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

/* ---- messages ---- */

static int parse_part(const void *message, size_t size)
{
    struct image_facts facts;
    void *exact = malloc(size);

    memcpy(exact, message, size);
    int error = image_facts_parse(exact, size, &facts);
    free(exact);
    if (!error)
        image_facts_fini(&facts);
    return error;
}

static void cut_messages_are_refused(void **state)
{
    struct image_facts facts;
    void *message;
    size_t size;

    (void)state;
    image_facts_read(text, strlen(text), SM, &facts);
    assert_int_equal(image_facts_pack(&facts, &message, &size), 0);
    image_facts_fini(&facts);
    for (size_t part = 0; part < size; part++)
        assert_int_equal(parse_part(message, part), -EBADMSG);
    assert_int_equal(parse_part(message, size), 0);
    free(message);
}

/* Bytes may be wrong without making the message wrong: it must be taken or refused. */
static void wrong_messages_do_no_harm(void **state)
{
    struct image_facts facts;
    uint64_t seed = 1;
    unsigned char *message;
    size_t size;

    (void)state;
    image_facts_read(text, strlen(text), SM, &facts);
    assert_int_equal(image_facts_pack(&facts, (void **)&message, &size), 0);
    image_facts_fini(&facts);
    for (unsigned i = 0; i < 20000; i++) {
        size_t at = unit_random(&seed) % size;
        unsigned char was = message[at];

        message[at] = (unsigned char)unit_random(&seed);
        parse_part(message, size);
        message[at] = i % 16 ? was : message[at];
    }
    free(message);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(facts_come_back),
        CASE(a_crash_costs_one_image),
        CASE(an_endless_loop_costs_one_image),
        CASE(an_endless_answer_is_refused),
        CASE(no_answer_is_refused),
        CASE(memory_is_limited),
        CASE(nothing_else_can_be_reached),
        CASE(threads_may_ask_together),
        CASE(cut_messages_are_refused),
        CASE(wrong_messages_do_no_harm),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
