/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expands ROW(name, suffix) for each row of the part of the opcode table that ALU_ROWS names, and
 * forgets both. It may be included again and again.
 */
#undef OP1
#undef OP2
#undef OP3
#undef OP4
#undef FLOAT1
#undef FLOAT2
#undef FLOAT3
#undef CMP
#undef TEST
#undef SEL
#undef CARRY2
#undef CARRY3
#define OP1(name, suffix, ...) ROW(name, suffix)
#define OP2(name, suffix, ...) ROW(name, suffix)
#define OP3(name, suffix, ...) ROW(name, suffix)
#define OP4(name, suffix, ...) ROW(name, suffix)
#define FLOAT1(name, ...) ROW(name, f32)
#define FLOAT2(name, ...) ROW(name, f32)
#define FLOAT3(name, ...) ROW(name, f32)
#define CMP(name, suffix, ...) ROW(setp_##name, suffix)
#define TEST(name, suffix, ...) ROW(testp_##name, suffix)
#define SEL(name, suffix, ...) ROW(name, suffix)
#define CARRY2(name, suffix, ...) ROW(name, suffix)
#define CARRY3(name, suffix, ...) ROW(name, suffix)
#include ALU_ROWS
#undef OP1
#undef OP2
#undef OP3
#undef OP4
#undef FLOAT1
#undef FLOAT2
#undef FLOAT3
#undef CMP
#undef TEST
#undef SEL
#undef CARRY2
#undef CARRY3
#undef ROW
#undef ALU_ROWS
