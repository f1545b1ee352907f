#ifndef RUNNEL_LOAD_OPTIONS_H
#define RUNNEL_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/load/payload.h"

/*
 * What was asked for on the command line, checked and with the defaults filled in. Nothing here
 * opens a socket or knows of one.
 */

enum {
    OPTIONS_HEADERS_MAX = 64,
    OPTIONS_CONTROLS_MAX = 32,
    OPTIONS_HDR_MAX = 8,
    OPTIONS_WHY_MAX_BYTES = 320,
};

enum arrivals { ARRIVALS_CONSTANT, ARRIVALS_POISSON };

/* The figures that have a distribution of their own; figures.h says what each is. */
enum figure {
    FIGURE_TTFT,
    FIGURE_TTFT_SENT,
    FIGURE_ITL,
    FIGURE_TPOT,
    FIGURE_TOTAL,
    FIGURE_LATENESS,
    FIGURE_PACE,
    FIGURE_PATH,
    FIGURE_DUE,
    FIGURE_TURN,
    FIGURE_START,
    FIGURES,
};

/* "ttft", "itl", .. as --hdr takes it and the JSON report names it. */
const char *figure_name(enum figure figure);

struct hdr_output {
    enum figure figure;
    const char *path;
};

/* Microseconds; 0: no bound. */
struct goodput {
    bool wanted;
    int64_t ttft_us, itl_us, tpot_us, total_us;
};

struct options {
    /* what is asked of the server */
    const char *url;
    const char *unix_socket; /* NULL: the URL's host */
    const char *method;      /* NULL: GET, or POST with a body */
    char *headers[OPTIONS_HEADERS_MAX];
    size_t header_count;
    char *body; /* NULL: none */
    size_t body_len;
    const char *prompt;                         /* NULL: not given */
    uint64_t prompts;                           /* variants; 1: the prompt itself */
    uint64_t tokens;                            /* 0: not given */
    const char *controls[OPTIONS_CONTROLS_MAX]; /* NAME=VALUE */
    size_t control_count;
    enum payload_format format;
    bool verify;
    bool insecure;

    /* how much, and when */
    uint64_t streams;
    uint64_t rate_milli; /* thousandths of a request a second; 0: closed loop */
    enum arrivals arrivals;
    uint64_t requests;   /* 0: until the duration is over */
    int64_t duration_us; /* 0: until the requests are done */
    int64_t warmup_us;
    int64_t ramp_us;
    int64_t timeout_us;
    bool keepalive;

    /* clients that are not nice */
    uint64_t abort_milli;          /* thousandths of a percent of the requests */
    uint64_t abort_min, abort_max; /* tokens; 0: anywhere in the stream */
    uint64_t slow_milli;
    int64_t slow_pause_us;
    uint64_t seed;

    /* what is told */
    struct goodput goodput;
    const char *json_path;
    struct hdr_output hdr[OPTIONS_HDR_MAX];
    size_t hdr_count;
    const char *events_path;
    uint64_t events_streams;
    bool quiet;
    bool self_test;

    char why[OPTIONS_WHY_MAX_BYTES]; /* the sentence of OPTIONS_USAGE */
};

enum options_status {
    OPTIONS_RUN,   /* go on */
    OPTIONS_SAID,  /* --help or --version was answered: exit 0 */
    OPTIONS_USAGE, /* `why` says what is wrong: exit 2 */
};

/*
 * Fills *options, whatever is returned; options_free it. `argv` must live as long as it. Reads
 * the files of -H @FILE and -d @FILE.
 */
enum options_status options_parse(struct options *options, int argc, char **argv);

void options_free(struct options *options);

#endif
