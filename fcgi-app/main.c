/* Start-up and its order; everything else has a room of its own. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "access.h"
#include "base/log.h"
#include "config.h"
#include "endpoints/cors.h"
#include "endpoints/keys.h"
#include "endpoints/routes.h"
#include "fastcgi/intake.h"
#include "fastcgi/listener.h"

#define RUNNEL_VERSION "0.1.0"

enum { EXIT_DRAINED = 0, EXIT_SETTING = 2, EXIT_START = 3 };

enum { PARAMS_MAX_BYTES = 128 << 10 }; /* nginx refuses to send more than 64 KiB */

struct server {
    struct app app;
    struct timing_trace trace;
    struct listener listener;
    struct intake *intake;
};

static void fail(const char *why)
{
    log_error("runnel cannot start: %s", why);
}

static void fail_errno(const char *what)
{
    log_error("runnel cannot start: %s: %s", what, strerror(errno));
}

/* libfcgi sets handlers of its own in FCGX_Init, so this comes after it. */
static void set_signals(void)
{
    sigset_t blocked;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &blocked,
                    NULL); /* inherited by every thread; the loop reads them */
}

/* Each stream is a descriptor: take what the limits allow. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void stop_intake(void *context)
{
    struct server *server = context;

    intake_stop(server->intake);
}

static void warn_of_keys(struct keys *keys, const char *path)
{
    if (keys_are_public(keys))
        log_warn("--api-key-file: every user of this machine can read `%s`", path);
}

static void reload_keys(void *context)
{
    struct server *server = context;
    char error[KEYS_ERROR_MAX_BYTES];

    if (server->app.keys == NULL)
        return;
    if (keys_reload(server->app.keys, error) != 0) {
        log_error("SIGHUP: going on with the keys that are known: %s", error);
        return;
    }
    log_info("api keys read anew, keys=%zu", keys_count(server->app.keys));
    warn_of_keys(server->app.keys, server->app.config->api_key_file);
}

/* Who may call. 0, or -1 with a sentence. */
static int open_doors(struct app *app, char error[400])
{
    const struct config *config = app->config;

    if (config->api_key_file[0] != '\0') {
        app->keys = keys_open(config->api_key_file, error);
        if (app->keys == NULL)
            return -1;
        warn_of_keys(app->keys, config->api_key_file);
    }
    if (config->cors_origin[0] != '\0') {
        app->cors = cors_create(config->cors_origin, error);
        if (app->cors == NULL)
            return -1;
    }
    return 0;
}

static void close_doors(struct app *app)
{
    keys_close(app->keys);
    cors_free(app->cors);
}

static int start_engine(struct server *server)
{
    const struct config *config = server->app.config;
    const struct loop_options options = {
        .pacer =
            {
                .slots = config->slots,
                .queue = config->queue,
                .stall_timeout_us = config->stall_timeout_us,
                .ignore_cancel = config->ignore_cancel,
                .ledger = server->app.ledger,
                .clock = clock_system(),
                .on_end = access_log,
            },
        .drain_us = config->drain_us,
        .on_drained = stop_intake,
        .on_hangup = reload_keys,
        .context = server,
    };

    server->app.loop = loop_create(&options);
    return server->app.loop != NULL ? 0 : -1;
}

static int start_intake(struct server *server)
{
    const struct config *config = server->app.config;
    const struct intake_options options = {
        .listen_fd = server->listener.fd,
        .limits = {.params_max_bytes = PARAMS_MAX_BYTES,
                   .body_max_bytes = config->body_max_bytes},
        .read_timeout_us = config->read_timeout_us,
        .peer_timeout_us = config->peer_timeout_us,
        .handle = routes_handle,
        .context = &server->app,
    };

    server->intake = intake_create(&options);
    return server->intake != NULL ? 0 : -1;
}

/* Everything that can fail, before anything is served. 0, or -1 and it has been said. */
static int start(struct server *server)
{
    const struct config *config = server->app.config;
    char error[400];

    if (request_library_init() != 0 || request_self_test(error) != 0) {
        fail(error);
        return -1;
    }
    set_signals();
    raise_descriptor_limit();
    if (listener_open(&server->listener, config->listen, (unsigned)config->socket_mode,
                      config->peer_timeout_us, error) != 0) {
        fail(error);
        return -1;
    }
    if (config->timing_trace[0] != '\0') {
        if (timing_trace_load(&server->trace, config->timing_trace, error) != 0) {
            fail(error);
            return -1;
        }
        server->app.trace = &server->trace;
    }
    if (open_doors(&server->app, error) != 0) {
        fail(error);
        return -1;
    }
    server->app.ledger = ledger_open(config->state, error);
    if (server->app.ledger == NULL) {
        fail(error);
        return -1;
    }
    if (start_engine(server) != 0 || start_intake(server) != 0) {
        fail_errno("the engine");
        return -1;
    }
    /* Threads last: from here on nothing fails. */
    if (log_start() != 0 || loop_start(server->app.loop) != 0) {
        fail_errno("threads");
        return -1;
    }
    return 0;
}

static int serve(const struct config *config)
{
    struct server server = {.app = {.config = config}, .listener = {.fd = -1}};

    if (start(&server) != 0) {
        listener_close(&server.listener);
        return EXIT_START;
    }
    if (config->ignore_cancel)
        log_warn(
            "--ignore-cancel: clients that leave are not noticed, their tokens are generated "
            "for nobody");
    log_info("runnel %s ready, pid=%d listen=%s slots=%llu queue=%llu state=%s", RUNNEL_VERSION,
             (int)getpid(), config->listen[0] != '\0' ? config->listen : "descriptor 0",
             (unsigned long long)config->slots, (unsigned long long)config->queue,
             config->state[0] != '\0' ? config->state : "memory");
    intake_run(server.intake); /* until the drain is over */
    listener_close(&server.listener);
    loop_join(server.app.loop);
    intake_destroy(server.intake);
    ledger_close(server.app.ledger);
    close_doors(&server.app);
    timing_trace_free(&server.trace);
    log_info("drained, runnel ends");
    log_stop();
    return EXIT_DRAINED;
}

static int check_origins(const struct config *config, char error[CONFIG_ERROR_MAX_BYTES])
{
    if (config->cors_origin[0] == '\0')
        return 0;
    struct cors *cors = cors_create(config->cors_origin, error);
    cors_free(cors);
    return cors != NULL ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct config config;
    char error[CONFIG_ERROR_MAX_BYTES];

    switch (config_load(&config, argc, argv, error)) {
    case CONFIG_HELP:
        config_help(stdout);
        return EXIT_DRAINED;
    case CONFIG_VERSION:
        puts("runnel " RUNNEL_VERSION);
        return EXIT_DRAINED;
    case CONFIG_PRINT:
        if (listener_check(config.listen, error) != 0 || check_origins(&config, error) != 0) {
            fprintf(stderr, "runnel: %s\n", error);
            return EXIT_SETTING;
        }
        config_print(&config, stdout);
        return EXIT_DRAINED;
    case CONFIG_INVALID:
        fprintf(stderr, "runnel: %s\n", error);
        return EXIT_SETTING;
    default:
        break;
    }
    if (log_open(config.log_file[0] != '\0' ? config.log_file : NULL,
                 (enum log_level)config.log_level, (enum log_format)config.log_format) != 0) {
        fprintf(stderr, "runnel: --log-file: cannot open `%s`: %s\n", config.log_file,
                strerror(errno));
        return EXIT_START;
    }
    return serve(&config);
}
