/* SPDX-License-Identifier: Apache-2.0 */
/* See parse_call.h. */
#include "parse_call.h"

#include <stdio.h>
#include <string.h>

#include "parse_operand.h"
#include "scope.h"

static const char *bits_of(enum ptx_type type)
{
    switch (ptx_type_size(type)) {
    case 1:
        return "b8";
    case 2:
        return "b16";
    case 4:
        return "b32";
    default:
        return "b64";
    }
}

/* ld.param or st.param of `width` elements. */
static const char *move_opcode(struct parser *parser, const char *name, enum ptx_type type,
                               unsigned width)
{
    char text[32];
    const char *vector = width == 1 ? "" : width == 2 ? ".v2" : ".v4";
    bool is_float = type == PTX_F32 || type == PTX_F64;
    int length = snprintf(text, sizeof(text), "%s%s.%s", name, vector,
                          is_float ? (type == PTX_F32 ? "f32" : "f64") : bits_of(type));
    return arena_copy_text(parser->arena, text, (size_t)length);
}

static bool is_supported(struct parser *parser, enum ptx_type type)
{
    if (type != PTX_PRED && !ptx_type_is_reference(type) && ptx_type_size(type) <= 8)
        return true;
    if (type == PTX_B128)
        lexer_unsupported(&parser->lexer, "parameters of 128 bits in registers");
    else
        lexer_fail(&parser->lexer, "a parameter cannot be of this type");
    return false;
}

/* `moved` is a register, a literal or a vector, `variable` a .param variable. */
static void add_move(struct parser *parser, const struct ptx_instruction *beside, bool is_load,
                     const struct ptx_operand *moved, struct ptx_symbol *variable)
{
    struct ptx_operand *operands = parser_alloc(parser, 3 * sizeof(*operands));
    if (!operands)
        return;
    unsigned width = moved->kind == PTX_OPERAND_LIST ? moved->count : 1;
    operands[2] = (struct ptx_operand){.kind = PTX_OPERAND_SYMBOL, .symbol = variable};
    operands[is_load ? 0 : 1] = *moved;
    operands[is_load ? 1 : 0] =
        (struct ptx_operand){.kind = PTX_OPERAND_ADDRESS, .count = 1, .elements = &operands[2]};
    struct ptx_instruction move = *beside;
    move.opcode =
        move_opcode(parser, is_load ? "ld.param" : "st.param", variable->variable.type, width);
    move.operands = operands;
    move.operand_count = 2;
    add_instruction(parser, &move);
}

/* ---- In the function ---- */

static void move_formals(struct parser *parser, const struct ptx_instruction *beside,
                         struct ptx_symbol *const *formals, uint32_t count, bool is_load)
{
    for (uint32_t i = 0; i < count && !parser->lexer.failed; i++) {
        struct ptx_operand moved = {0};
        if (!formals[i]->variable.is_register)
            continue;
        struct token name = {.text = formals[i]->name, .length = strlen(formals[i]->name)};
        operand_of_register(parser, &name, &moved);
        if (is_supported(parser, formals[i]->variable.type))
            add_move(parser, beside, is_load, &moved, formals[i]);
    }
}

void load_register_parameters(struct parser *parser)
{
    struct ptx_instruction first = {.guard = -1, .line = parser->function->line};
    move_formals(parser, &first, parser->function->params, parser->function->param_count, true);
}

void store_register_results(struct parser *parser, const struct ptx_instruction *before)
{
    move_formals(parser, before, parser->function->returns, parser->function->return_count, false);
}

/* ---- In the caller ---- */

struct call_signature {
    struct ptx_symbol *const *params;
    uint32_t param_count;
    struct ptx_symbol *const *returns;
    uint32_t return_count;
};

/* Of the function that is called or, through a pointer, of the prototype behind it. */
static struct call_signature find_signature(const struct ptx_instruction *call)
{
    for (uint32_t i = 0; i < call->operand_count; i++) {
        const struct ptx_symbol *symbol = call->operands[i].symbol;
        if (call->operands[i].kind != PTX_OPERAND_SYMBOL || !symbol)
            continue;
        const struct ptx_function *function = symbol->kind == PTX_FUNCTION    ? symbol->function
                                              : symbol->kind == PTX_PROTOTYPE ? symbol->prototype
                                                                              : NULL;
        if (function)
            return (struct call_signature){function->params, function->param_count,
                                           function->returns, function->return_count};
    }
    return (struct call_signature){0};
}

static bool is_argument_variable(const struct ptx_operand *one)
{
    return one->kind == PTX_OPERAND_SYMBOL;
}

static struct ptx_symbol *make_variable(struct parser *parser, const struct ptx_symbol *formal,
                                        uint32_t line)
{
    struct ptx_symbol *symbol = parser_alloc(parser, sizeof(*symbol));
    if (!symbol)
        return NULL;
    *symbol = (struct ptx_symbol){.name = formal->name,
                                  .kind = PTX_VARIABLE,
                                  .line = line,
                                  .home = parser->function,
                                  .variable = {.space = PTX_PARAM,
                                               .type = formal->variable.type,
                                               .align = formal->variable.align,
                                               .size = formal->variable.size}};
    add_variable(parser, symbol);
    return symbol;
}

/* An argument that is no .param variable becomes one; results come back after the call. */
static void pass_one(struct parser *parser, const struct ptx_instruction *call,
                     struct ptx_operand *actual, const struct ptx_symbol *formal, bool is_result)
{
    if (actual->kind != PTX_OPERAND_REGISTER && actual->kind != PTX_OPERAND_LIST &&
        actual->kind != PTX_OPERAND_SINK && is_result) {
        lexer_fail(&parser->lexer, "a result of a call needs a register or a .param variable");
        return;
    }
    struct ptx_symbol *variable = make_variable(parser, formal, call->line);
    if (!variable || !is_supported(parser, formal->variable.type))
        return;
    if (!is_result)
        add_move(parser, call, false, actual, variable);
    else if (actual->kind != PTX_OPERAND_SINK)
        parser->results[parser->result_count++] =
            (struct call_result){.to = *actual, .from = variable};
    *actual = (struct ptx_operand){
        .kind = PTX_OPERAND_SYMBOL, .scope = actual->scope, .symbol = variable};
}

static void pass_list(struct parser *parser, const struct ptx_instruction *call,
                      struct ptx_operand *list, struct ptx_symbol *const *formals, uint32_t count,
                      bool is_result)
{
    for (uint32_t i = 0; i < list->count && !parser->lexer.failed; i++) {
        if (is_argument_variable(&list->elements[i]))
            continue;
        if (i >= count)
            lexer_fail(&parser->lexer, "a call has more arguments than the function");
        else
            pass_one(parser, call, &list->elements[i], formals[i], is_result);
    }
}

static bool has_other_than_variables(const struct ptx_operand *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (!is_argument_variable(&list->elements[i]))
            return true;
    }
    return false;
}

void add_call(struct parser *parser, const struct ptx_instruction *call)
{
    struct call_signature signature = find_signature(call);
    bool is_result = true; /* a list before the function's name */
    for (uint32_t i = 0; i < call->operand_count; i++) {
        struct ptx_operand *list = &call->operands[i];
        if (list->kind != PTX_OPERAND_LIST) {
            is_result = false;
        } else if (has_other_than_variables(list)) {
            if (is_result)
                parser->results = parser_alloc(parser, list->count * sizeof(*parser->results));
            parser->result_count = is_result ? 0 : parser->result_count;
            if (parser->lexer.failed)
                return;
            pass_list(parser, call, list, is_result ? signature.returns : signature.params,
                      is_result ? signature.return_count : signature.param_count, is_result);
        }
    }
    add_instruction(parser, call);
    for (uint32_t i = 0; i < parser->result_count; i++)
        add_move(parser, call, true, &parser->results[i].to, parser->results[i].from);
    parser->result_count = 0;
}
