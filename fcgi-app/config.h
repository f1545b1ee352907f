#ifndef RUNNEL_CONFIG_H
#define RUNNEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/timing.h"

/*
 * The server's settings: a flag wins over its environment variable, which wins over the
 * default.
 * `--itl-ms 25` and RUNNEL_ITL_MS=25 are the same setting. One table in config.c holds each
 * setting's name, range, default and help; the help text, the environment names and
 * --print-config all come from it.
 */

struct config {
    /* where it listens and writes */
    const char *listen;   /* "" (descriptor 0), "unix:PATH" or "HOST:PORT" */
    uint64_t socket_mode; /* permission bits of a unix socket that we make */
    const char *state;    /* the ledger's file; "": memory only */
    const char *log_file; /* "": standard error */
    uint64_t log_level;   /* an enum log_level */
    uint64_t log_format;  /* an enum log_format */
    /* what a request gets when it does not say */
    uint64_t max_tokens;
    int64_t ttft_us;
    int64_t itl_us;
    struct jitter jitter;
    uint64_t prefill_us_per_token;
    const char *timing_trace; /* "": none */
    /* what a request may ask for */
    uint64_t max_tokens_limit;
    int64_t ttft_limit_us;
    int64_t itl_limit_us;
    uint64_t prompt_max_bytes;
    uint64_t body_max_bytes;
    /* the engine */
    uint64_t slots;
    uint64_t queue;
    int64_t stall_timeout_us;
    int64_t drain_us;
    uint64_t itl_per_running_us;
    bool ignore_cancel;
    /* connections */
    int64_t read_timeout_us;
    int64_t peer_timeout_us; /* 0: the kernel's own */
    /* who may call */
    const char *api_key_file; /* "": anybody */
    const char *cors_origin;  /* "": no other origin's page */
};

enum config_action {
    CONFIG_RUN,
    CONFIG_PRINT, /* --print-config */
    CONFIG_HELP,  /* --help */
    CONFIG_VERSION,
    CONFIG_INVALID, /* `error` says why, naming the setting */
};

enum { CONFIG_ERROR_MAX_BYTES = 400 };

/*
 * Fill `config` from the defaults, the environment and the arguments. The texts in it point
 * into argv and the environment. Call once, before any thread starts.
 */
enum config_action config_load(struct config *config, int argc, char **argv,
                               char error[CONFIG_ERROR_MAX_BYTES]);

/* `name = value`, a line each, with where the value comes from; readable as a list of flags. */
void config_print(const struct config *config, FILE *out);

void config_help(FILE *out);

#endif
