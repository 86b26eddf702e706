/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX text into tokens. The first error latches: from then on every token is the end, so the parser
 * unwinds by itself.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptx.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,      /* foo, $L1, %r3, %tid.x */
    TOKEN_DIRECTIVE, /* .reg: text is without the dot */
    TOKEN_INTEGER,
    TOKEN_F32,
    TOKEN_F64,
    TOKEN_STRING, /* text is without the quotes */
    TOKEN_PUNCTUATION,
};

struct token {
    enum token_kind kind;
    const char *text;
    size_t length;
    uint32_t line;
    uint64_t bits;
    char punctuation; /* its first character; length tells < from << and <= */
};

struct lexer {
    const char *at;
    const char *end;
    uint32_t line;
    bool failed;
    struct token token; /* the current one */
    struct ptx_error *error;
};

void lexer_init(struct lexer *lexer, const char *text, size_t size, struct ptx_error *error);
void lexer_next(struct lexer *lexer);

/* Grows the current name to a whole opcode: ld.shared::cta.u32 */
void lexer_extend_opcode(struct lexer *lexer);
/* Drops the rest of the line: .loc and .file end there. */
void lexer_skip_line(struct lexer *lexer);

bool lexer_is(const struct lexer *lexer, char punctuation);
bool lexer_is_directive(const struct lexer *lexer, const char *name);
/* Takes the token if it is this one. */
bool lexer_accept(struct lexer *lexer, char punctuation);
bool lexer_accept_directive(struct lexer *lexer, const char *name);
void lexer_expect(struct lexer *lexer, char punctuation);

/* The text may be right, but the software GPU does not have this. */
void lexer_unsupported(struct lexer *lexer, const char *what);
void lexer_fail(struct lexer *lexer, const char *format, ...) __attribute__((format(printf, 2, 3)));
