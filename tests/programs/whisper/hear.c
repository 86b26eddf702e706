/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what a model hears in a second of noise: hear MODEL TOKENS */
#include <stdio.h>
#include <stdlib.h>

#include "whisper.h"

#define SAMPLES 16000

static void make_noise(float *samples)
{
    unsigned state = 1;

    for (int i = 0; i < SAMPLES; i++) {
        state = state * 1103515245 + 12345;
        samples[i] = (float)((state >> 16) % 8192) / 32768;
    }
}

static struct whisper_full_params parameters(int tokens)
{
    struct whisper_full_params params = whisper_full_default_params(WHISPER_SAMPLING_GREEDY);

    params.n_threads = 1;
    params.temperature_inc = 0;
    params.max_tokens = tokens;
    params.audio_ctx = 64;
    params.print_progress = params.print_timestamps = false;
    params.no_timestamps = params.single_segment = true;
    return params;
}

int main(int count, char **arguments)
{
    static float samples[SAMPLES];
    struct whisper_context_params how = whisper_context_default_params();

    how.use_gpu = true;
    how.flash_attn = false;
    if (count != 3)
        return 2;
    struct whisper_context *whisper = whisper_init_from_file_with_params(arguments[1], how);
    make_noise(samples);
    if (!whisper || whisper_full(whisper, parameters(atoi(arguments[2])), samples, SAMPLES))
        return 1;
    for (int i = 0; i < whisper_full_n_segments(whisper); i++) {
        printf("said");
        for (int j = 0; j < whisper_full_n_tokens(whisper, i); j++)
            printf(" %d", whisper_full_get_token_id(whisper, i, j));
        puts("");
    }
    whisper_free(whisper);
    return 0;
}
