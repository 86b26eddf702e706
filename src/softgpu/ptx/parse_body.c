/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a function: declarations, labels, instructions, nested blocks.
 */
#include <string.h>

#include "parse.h"
#include "parse_call.h"
#include "parse_constant.h"
#include "parse_operand.h"
#include "parse_variable.h"
#include "scope.h"

static void parse_registers(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    unsigned width = parse_vector_width(parser);
    enum ptx_type type = ptx_type_from_name(lexer->token.text, lexer->token.length);
    if (lexer->token.kind != TOKEN_DIRECTIVE || type == PTX_NO_TYPE) {
        lexer_fail(lexer, "'%.*s' is not the type of a register", (int)lexer->token.length,
                   lexer->token.text);
        return;
    }
    if (width > 4 || (width > 1 && type == PTX_PRED))
        lexer_fail(lexer, "a vector of registers has 2 or 4 numbers");
    lexer_next(lexer);
    do {
        struct token name = lexer->token;
        uint64_t count = 0;
        if (name.kind != TOKEN_NAME)
            lexer_fail(lexer, "expected the name of a register");
        lexer_next(lexer);
        if (lexer_accept(lexer, '<')) {
            count = parse_count(parser);
            lexer_expect(lexer, '>');
        }
        if (!lexer->failed)
            scope_add_registers(parser, type, &name, count, width);
    } while (lexer_accept(lexer, ','));
    lexer_expect(lexer, ';');
}

void add_instruction(struct parser *parser, const struct ptx_instruction *instruction)
{
    struct ptx_function *function = parser->function;
    struct ptx_instruction *list =
        parser_grow(parser, function->instructions, function->instruction_count, sizeof(*list));
    if (!list)
        return;
    function->instructions = list;
    list[function->instruction_count++] = *instruction;
}

static void parse_guard(struct parser *parser, struct ptx_instruction *instruction)
{
    struct lexer *lexer = &parser->lexer;
    instruction->guard_negated = lexer_accept(lexer, '!');
    struct ptx_operand guard;
    parse_operand(parser, &guard);
    if (lexer->failed)
        return;
    if (guard.kind != PTX_OPERAND_REGISTER ||
        parser->function->registers[guard.reg].type != PTX_PRED) {
        lexer_fail(lexer, "a guard must be a predicate register");
        return;
    }
    instruction->guard = (int32_t)guard.reg;
}

static void parse_operands(struct parser *parser, struct ptx_instruction *instruction)
{
    struct lexer *lexer = &parser->lexer;
    struct ptx_operand *operands = NULL;
    uint32_t count = 0;
    while (!lexer->failed && !lexer_is(lexer, ';')) {
        operands = parser_grow(parser, operands, count, sizeof(*operands));
        if (!operands)
            return;
        if (count >= PTX_MAX_OPERANDS) {
            lexer_fail(lexer, "too many operands");
            return;
        }
        parse_operand(parser, &operands[count++]);
        if (!lexer_accept(lexer, ','))
            break;
    }
    instruction->operands = operands;
    instruction->operand_count = count;
    lexer_expect(lexer, ';');
}

/* "call" and "call.uni" */
static bool is_opcode(const struct ptx_instruction *instruction, const char *name)
{
    size_t length = strlen(name);
    return instruction->opcode && strncmp(instruction->opcode, name, length) == 0 &&
           (instruction->opcode[length] == '\0' || instruction->opcode[length] == '.');
}

static void parse_instruction(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    struct ptx_instruction parsed = {.guard = -1, .line = lexer->token.line};
    if (lexer_accept(lexer, '@'))
        parse_guard(parser, &parsed);
    if (lexer->token.kind != TOKEN_NAME) {
        lexer_fail(lexer, "expected an instruction");
        return;
    }
    lexer_extend_opcode(lexer);
    parsed.opcode = arena_copy_text(parser->arena, lexer->token.text, lexer->token.length);
    lexer_next(lexer);
    parser->opcode = parsed.opcode;
    parser->in_call = is_opcode(&parsed, "call");
    parse_operands(parser, &parsed);
    if (is_opcode(&parsed, "ret") && !lexer->failed)
        store_register_results(parser, &parsed);
    if (lexer->failed)
        return;
    if (parser->in_call)
        add_call(parser, &parsed);
    else
        add_instruction(parser, &parsed);
    parser->in_call = false;
}

static void parse_branch_targets(struct parser *parser, const struct token *name)
{
    struct ptx_symbol *symbol = scope_add_symbol(parser, PTX_BRANCH_TARGETS, name);
    struct ptx_instruction list = {0};
    parse_operands(parser, &list);
    if (!symbol)
        return;
    symbol->targets.labels = list.operands;
    symbol->targets.count = list.operand_count;
    symbol->next_in_scope = parser->branch_targets;
    parser->branch_targets = symbol;
}

static void parse_call_prototype(struct parser *parser, const struct token *name)
{
    struct ptx_symbol *symbol = scope_add_symbol(parser, PTX_PROTOTYPE, name);
    parser->in_prototype = true;
    struct ptx_function *prototype = parse_prototype(parser);
    parser->in_prototype = false;
    if (symbol)
        symbol->prototype = prototype;
    while (lexer_accept_directive(&parser->lexer, "noreturn") ||
           lexer_accept_directive(&parser->lexer, "abi_preserve"))
        ;
    lexer_expect(&parser->lexer, ';');
}

/* A list of functions, which are all of one signature. */
static void parse_call_targets(struct parser *parser, const struct token *name)
{
    struct ptx_symbol *symbol = scope_add_symbol(parser, PTX_PROTOTYPE, name);
    struct ptx_instruction list = {0};
    parse_operands(parser, &list);
    const struct ptx_symbol *first = list.operand_count ? list.operands[0].symbol : NULL;
    if (!first || first->kind != PTX_FUNCTION)
        lexer_fail(&parser->lexer, ".calltargets needs functions");
    else if (symbol)
        symbol->prototype = first->function;
}

static void skip_statement(struct parser *parser)
{
    while (!parser->lexer.failed && parser->lexer.token.kind != TOKEN_END &&
           !lexer_is(&parser->lexer, ';'))
        lexer_next(&parser->lexer);
    lexer_expect(&parser->lexer, ';');
}

/* name: followed by a directive that needs a name, or else by code. */
static void parse_label(struct parser *parser, const struct token *name)
{
    struct lexer *lexer = &parser->lexer;
    lexer_expect(lexer, ':');
    if (lexer_accept_directive(lexer, "branchtargets")) {
        parse_branch_targets(parser, name);
    } else if (lexer_accept_directive(lexer, "callprototype")) {
        parse_call_prototype(parser, name);
    } else if (lexer_accept_directive(lexer, "calltargets")) {
        parse_call_targets(parser, name);
    } else {
        struct ptx_symbol *symbol = scope_add_symbol(parser, PTX_LABEL, name);
        if (symbol)
            symbol->target = parser->function->instruction_count;
    }
}

static bool next_is_colon(const struct lexer *lexer)
{
    const char *at = lexer->at;
    while (at < lexer->end && (*at == ' ' || *at == '\t'))
        at++;
    return at < lexer->end && *at == ':' && !(lexer->end - at > 1 && at[1] == ':');
}

static void parse_directive(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    enum ptx_space space;
    if (lexer_accept_directive(lexer, "reg"))
        parse_registers(parser);
    else if (lexer_is_directive(lexer, "loc") || lexer_is_directive(lexer, "file"))
        lexer_skip_line(lexer);
    else if (lexer_is_directive(lexer, "pragma"))
        skip_statement(parser);
    else if (parse_space(parser, &space))
        parse_variables(parser, space, false);
    else
        lexer_fail(lexer, "'.%.*s' is not known here", (int)lexer->token.length, lexer->token.text);
}

static void parse_statement(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    if (lexer->token.kind == TOKEN_DIRECTIVE) {
        parse_directive(parser);
    } else if (lexer->token.kind == TOKEN_NAME && next_is_colon(lexer)) {
        struct token name = lexer->token;
        lexer_next(lexer);
        parse_label(parser, &name);
    } else if (lexer_accept(lexer, '{')) {
        scope_enter(parser);
        while (!lexer->failed && !lexer_is(lexer, '}') && lexer->token.kind != TOKEN_END)
            parse_statement(parser);
        lexer_expect(lexer, '}');
        if (!lexer->failed)
            scope_leave(parser);
    } else if (!lexer_accept(lexer, ';')) {
        parse_instruction(parser);
    }
}

static void resolve_targets(struct parser *parser)
{
    struct ptx_symbol *symbol = parser->branch_targets;
    for (; symbol && !parser->lexer.failed; symbol = symbol->next_in_scope)
        resolve_operands(parser, symbol->targets.labels, symbol->targets.count, symbol->line);
    parser->branch_targets = NULL;
}

void parse_body(struct parser *parser)
{
    struct lexer *lexer = &parser->lexer;
    struct ptx_function *function = parser->function;
    struct ptx_instruction end = {.guard = -1};
    load_register_parameters(parser);
    while (!lexer->failed && !lexer_is(lexer, '}') && lexer->token.kind != TOKEN_END)
        parse_statement(parser);
    end.line = lexer->token.line;
    store_register_results(parser, &end);
    lexer_expect(lexer, '}');
    for (uint32_t i = 0; i < function->instruction_count && !lexer->failed; i++) {
        struct ptx_instruction *instruction = &function->instructions[i];
        resolve_operands(parser, instruction->operands, instruction->operand_count,
                         instruction->line);
    }
    resolve_targets(parser);
    function->has_body = !lexer->failed;
}
