/*
 * floor: what a token costs at least, for comparison. A FastCGI responder without a library: it
 * accepts, reads the one request that nginx sends, and writes a prepared record for each token
 * with a bare write(2), at absolute deadlines from a heap, in one thread with epoll. It checks
 * nothing that a server must check, counts nothing, notices a client that left by a failed
 * write alone, and drops whoever reads slowly: so nobody can be much cheaper, and it is no
 * server.
 *
 *     floor SOCKET          query: max_tokens (128), ttft_ms (200), itl_ms (25)
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* FastCGI 1.0, sections 3.3 and 8 */
enum { BEGIN = 1, END = 3, PARAMS = 4, STDIN = 5, STDOUT = 6 };

enum { REQUEST_MAX_BYTES = 16384, EVENTS_A_TURN = 512, BACKLOG = 4096 };

struct peer {
    int fd;
    int64_t due_ns, gap_ns;
    uint64_t left; /* tokens; 0: the request is still being read */
    size_t len;
    unsigned char *request; /* NULL once it has been read */
};

static struct peer **heap;
static size_t heap_count, heap_room;

/* --- what is written: a record is 8 bytes of head and its content --- */

struct record {
    unsigned char bytes[512];
    size_t len;
};

static struct record head, token, end;

static void append_record(struct record *record, unsigned char type, const char *content,
                          size_t len)
{
    unsigned char *at = record->bytes + record->len;

    memcpy(at,
           (const unsigned char[8]){1, type, 0, 1, (unsigned char)(len >> 8),
                                    (unsigned char)len, 0, 0},
           8);
    memcpy(at + 8, content, len);
    record->len += 8 + len;
}

static void prepare_records(void)
{
    static const char head_text[] = "Content-Type: text/event-stream; charset=utf-8\r\n"
                                    "Cache-Control: no-cache, no-transform\r\n"
                                    "X-Accel-Buffering: no\r\n\r\n";
    static const char token_text[] = "data: {\"token\":\" word\"}\n\n";
    static const char end_text[] = "data: [DONE]\n\n";

    append_record(&head, STDOUT, head_text, sizeof(head_text) - 1);
    append_record(&token, STDOUT, token_text, sizeof(token_text) - 1);
    append_record(&end, STDOUT, end_text, sizeof(end_text) - 1);
    append_record(&end, STDOUT, "", 0);
    append_record(&end, END, "\0\0\0\0\0\0\0", 8);
}

static bool put(const struct peer *peer, const struct record *record)
{
    return write(peer->fd, record->bytes, record->len) == (ssize_t)record->len;
}

/* --- time --- */

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sift_up(size_t at)
{
    struct peer *peer = heap[at];

    for (; at > 0 && peer->due_ns < heap[(at - 1) / 2]->due_ns; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = peer;
}

static void sift_down(void)
{
    struct peer *peer = heap[0];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < heap_count && heap[child + 1]->due_ns < heap[child]->due_ns)
            child++;
        if (child >= heap_count || peer->due_ns <= heap[child]->due_ns)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = peer;
}

static void push(struct peer *peer)
{
    if (heap_count == heap_room) {
        heap_room = heap_room > 0 ? 2 * heap_room : 1024;
        heap = realloc(heap, heap_room * sizeof(struct peer *));
        if (heap == NULL)
            abort();
    }
    heap[heap_count++] = peer;
    sift_up(heap_count - 1);
}

/* Takes the first out; `peer` is closed and gone. */
static void drop_first(void)
{
    struct peer *peer = heap[0];

    heap[0] = heap[--heap_count];
    if (heap_count > 0)
        sift_down();
    close(peer->fd);
    free(peer);
}

static void send_due(void)
{
    while (heap_count > 0 && heap[0]->due_ns <= now_ns()) {
        struct peer *peer = heap[0];
        bool is_sent = put(peer, &token);

        if (!is_sent || --peer->left == 0) {
            if (is_sent)
                put(peer, &end);
            drop_first();
            continue;
        }
        peer->due_ns += peer->gap_ns;
        sift_down();
    }
}

/* --- requests --- */

/* The whole number or decimal of `name=` in the query, in millionths; else what it is without.
 */
static int64_t parameter(const char *query, const char *name, int64_t otherwise)
{
    size_t len = strlen(name);

    for (const char *at = query; at != NULL; at = strchr(at, '&')) {
        at += *at == '&';
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return (int64_t)(strtod(at + len + 1, NULL) * 1e6);
    }
    return otherwise;
}

/* The length of a name or value in PARAMS: one byte, or four with the top bit set. */
static size_t take_length(const unsigned char **at)
{
    size_t len = *(*at)++;

    if (len < 0x80)
        return len;
    len = (len & 0x7f) << 24 | (size_t)(*at)[0] << 16 | (size_t)(*at)[1] << 8 | (*at)[2];
    *at += 3;
    return len;
}

static void find_query(const unsigned char *params, size_t len, char query[4096])
{
    const unsigned char *end_of = params + len;

    while (params + 8 < end_of) {
        size_t name_len = take_length(&params);
        size_t value_len = take_length(&params);
        if (name_len + value_len > (size_t)(end_of - params))
            return;
        if (name_len == 12 && memcmp(params, "QUERY_STRING", 12) == 0 && value_len < 4096) {
            memcpy(query, params + name_len, value_len);
            query[value_len] = '\0';
        }
        params += name_len + value_len;
    }
}

/* 1: it is whole and has been answered, 0: more is to come, -1: drop it. */
static int take_request(struct peer *peer)
{
    unsigned char params[REQUEST_MAX_BYTES];
    char query[4096] = "";
    size_t params_len = 0;
    bool is_whole = false;

    for (size_t at = 0; at + 8 <= peer->len && !is_whole;) {
        const unsigned char *record = peer->request + at;
        size_t len = (size_t)record[4] << 8 | record[5];
        if (at + 8 + len + record[6] > peer->len)
            return 0;
        if (record[1] == PARAMS) {
            memcpy(params + params_len, record + 8, len);
            params_len += len;
        }
        is_whole = record[1] == STDIN && len == 0;
        at += 8 + len + record[6];
    }
    if (!is_whole)
        return 0;
    find_query(params, params_len, query);
    free(peer->request);
    peer->request = NULL;
    peer->left = (uint64_t)(parameter(query, "max_tokens", 128000000) / 1000000);
    peer->gap_ns = parameter(query, "itl_ms", 25000000);
    peer->due_ns = now_ns() + parameter(query, "ttft_ms", 200000000);
    if (peer->left == 0 || !put(peer, &head))
        return -1;
    push(peer);
    return 1;
}

static void read_request(int epoll, struct peer *peer)
{
    ssize_t got = read(peer->fd, peer->request + peer->len, REQUEST_MAX_BYTES - peer->len);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        peer->len += (size_t)got;
    int status = got > 0 ? take_request(peer) : -1;
    if (status != 0)
        epoll_ctl(epoll, EPOLL_CTL_DEL, peer->fd, NULL);
    if (status < 0) {
        close(peer->fd);
        free(peer->request);
        free(peer);
    }
}

static void accept_peers(int epoll, int listener)
{
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct peer *peer = calloc(1, sizeof(*peer));
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};

        if (peer == NULL || (peer->request = malloc(REQUEST_MAX_BYTES)) == NULL)
            abort();
        peer->fd = fd;
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        chmod(path, 0666) != 0 || listen(fd, BACKLOG) != 0) {
        perror(path);
        exit(3);
    }
    return fd;
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS_A_TURN];
    struct epoll_event event = {.events = EPOLLIN};
    struct rlimit limit;

    if (argc != 2) {
        fputs("usage: floor SOCKET\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    prctl(PR_SET_TIMERSLACK, 1UL);
    prepare_records();
    int listener = listen_at(argv[1]);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int64_t wait_ns = heap_count > 0 ? heap[0]->due_ns - now_ns() : 1000000000;
        if (wait_ns < 0)
            wait_ns = 0;
        struct timespec wait = {.tv_sec = wait_ns / 1000000000,
                                .tv_nsec = wait_ns % 1000000000};
        int count = epoll_pwait2(epoll, events, EVENTS_A_TURN, &wait, NULL);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == NULL)
                accept_peers(epoll, listener);
            else
                read_request(epoll, events[i].data.ptr);
        }
        send_due();
    }
}
