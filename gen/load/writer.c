/* One process, one epoll set, a heap of the times at which the next event is due. */

#include "gen/load/writer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    BACKLOG = 4096,
    HEAD_MAX_BYTES = 2048,
    EVENTS_A_TURN = 512,
    FLOOD_EVENTS = 256, /* in one write */
    EVENT_MAX_BYTES = 160,
};

struct peer {
    int fd;
    char head[HEAD_MAX_BYTES];
    size_t head_len;
    uint64_t tokens, sent;
    int64_t due_us, gap_us;
    uint64_t flood_left; /* bytes */
    bool is_waiting;     /* in the heap */
};

struct server {
    int listener, epoll;
    struct peer **heap;
    size_t count, room;
    char block[FLOOD_EVENTS * EVENT_MAX_BYTES]; /* events that are all the same */
    size_t event_len, block_len;
};

static const char reply_head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                 "Transfer-Encoding: chunked\r\n\r\n";
static const char reply_end[] = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

/* --- the heap --- */

static void swap(struct server *server, size_t a, size_t b)
{
    struct peer *kept = server->heap[a];

    server->heap[a] = server->heap[b];
    server->heap[b] = kept;
}

static int push(struct server *server, struct peer *peer)
{
    if (server->count == server->room) {
        size_t room = server->room > 0 ? server->room * 2 : 1024;
        struct peer **grown = realloc(server->heap, room * sizeof(struct peer *));
        if (grown == NULL)
            return -1;
        server->heap = grown;
        server->room = room;
    }
    size_t at = server->count++;
    server->heap[at] = peer;
    peer->is_waiting = true;
    for (; at > 0 && server->heap[at]->due_us < server->heap[(at - 1) / 2]->due_us;
         at = (at - 1) / 2)
        swap(server, at, (at - 1) / 2);
    return 0;
}

static struct peer *pop(struct server *server)
{
    struct peer *first = server->heap[0];
    size_t at = 0;

    server->heap[0] = server->heap[--server->count];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < server->count &&
            server->heap[child + 1]->due_us < server->heap[child]->due_us)
            child++;
        if (child >= server->count || server->heap[at]->due_us <= server->heap[child]->due_us)
            break;
        swap(server, at, child);
        at = child;
    }
    first->is_waiting = false;
    return first;
}

/* --- peers --- */

static void drop(struct peer *peer)
{
    close(peer->fd);
    peer->fd = -1;
    if (!peer->is_waiting) /* else the heap still has it */
        free(peer);
}

static void accept_peers(struct server *server)
{
    for (;;) {
        int one = 1;
        int fd = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct peer *peer = fd < 0 ? NULL : calloc(1, sizeof(*peer));

        if (fd < 0)
            return;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
        if (peer == NULL || epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
            free(peer);
            close(fd);
            continue;
        }
        peer->fd = fd;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
}

/* One event as an HTTP chunk; its length. */
static size_t write_event(const struct peer *peer, int64_t now_us, int64_t due_us, char *out)
{
    char data[EVENT_MAX_BYTES - 16];
    int len = snprintf(data, sizeof(data),
                       "data: {\"token\":\" token\",\"i\":%" PRIu64 ",\"t_us\":%" PRId64
                       ",\"due_us\":%" PRId64 "}\n\n",
                       peer->sent, now_us, due_us);

    return (size_t)snprintf(out, EVENT_MAX_BYTES, "%x\r\n%s\r\n", (unsigned)len, data);
}

/* Whether all of it went out. A client that does not read is not in this test. */
static bool send_all(const struct peer *peer, const char *bytes, size_t len)
{
    return send(peer->fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* As much of the events as the socket takes. All are the same, so a place in them is a
 * remainder. */
static void flood(struct server *server, struct peer *peer)
{
    while (peer->flood_left > 0) {
        size_t at =
            (size_t)((server->event_len * peer->tokens - peer->flood_left) % server->block_len);
        size_t len = server->block_len - at;
        if (len > peer->flood_left)
            len = (size_t)peer->flood_left;
        ssize_t sent = send(peer->fd, server->block + at, len, MSG_NOSIGNAL);
        if (sent < 0)
            return; /* EPOLLOUT tells when there is room, EPOLLIN when there is nobody */
        peer->flood_left -= (uint64_t)sent;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    epoll_ctl(server->epoll, EPOLL_CTL_MOD, peer->fd, &event);
    send_all(peer, reply_end, sizeof(reply_end) - 1);
}

static void answer(struct server *server, struct peer *peer)
{
    unsigned long long tokens, first_us, gap_us;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = peer};

    if (sscanf(peer->head, "GET /?tokens=%llu&first_us=%llu&gap_us=%llu ", &tokens, &first_us,
               &gap_us) != 3 ||
        !send_all(peer, reply_head, sizeof(reply_head) - 1)) {
        drop(peer);
        return;
    }
    peer->head_len = 0;
    peer->tokens = tokens;
    peer->sent = 0;
    peer->gap_us = (int64_t)gap_us;
    peer->due_us = clock_monotonic_us() + (int64_t)first_us;
    if (gap_us > 0) {
        push(server, peer);
        return;
    }
    peer->flood_left = server->event_len * tokens;
    epoll_ctl(server->epoll, EPOLL_CTL_MOD, peer->fd, &event);
}

static void read_peer(struct server *server, struct peer *peer)
{
    ssize_t got =
        recv(peer->fd, peer->head + peer->head_len, sizeof(peer->head) - 1 - peer->head_len, 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        drop(peer);
        return;
    }
    peer->head_len += (size_t)got;
    peer->head[peer->head_len] = '\0';
    if (strstr(peer->head, "\r\n\r\n") != NULL)
        answer(server, peer);
    else if (peer->head_len == sizeof(peer->head) - 1)
        drop(peer);
}

/* --- time --- */

static void send_due(struct server *server)
{
    char event[EVENT_MAX_BYTES];

    while (server->count > 0) {
        int64_t now_us = clock_monotonic_us();
        if (server->heap[0]->due_us > now_us)
            return;
        struct peer *peer = pop(server);
        if (peer->fd < 0) {
            free(peer);
            continue;
        }
        if (!send_all(peer, event, write_event(peer, now_us, peer->due_us, event)))
            continue; /* its close is on its way */
        if (++peer->sent == peer->tokens) {
            send_all(peer, reply_end, sizeof(reply_end) - 1);
            continue;
        }
        peer->due_us += peer->gap_us;
        push(server, peer);
    }
}

static void serve(struct server *server)
{
    struct epoll_event events[EVENTS_A_TURN];

    for (;;) {
        int64_t wait_us =
            server->count > 0 ? server->heap[0]->due_us - clock_monotonic_us() : 1000000;
        if (wait_us < 0)
            wait_us = 0;
        struct timespec wait = {.tv_sec = wait_us / 1000000,
                                .tv_nsec = wait_us % 1000000 * 1000};
        int count = epoll_pwait2(server->epoll, events, EVENTS_A_TURN, &wait, NULL);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == NULL)
                accept_peers(server);
            else if (events[i].events & EPOLLOUT)
                flood(server, events[i].data.ptr);
            else
                read_peer(server, events[i].data.ptr);
        }
        send_due(server);
    }
}

/* --- the process --- */

static int listen_on_loopback(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, BACKLOG) != 0 || getsockname(fd, (struct sockaddr *)&address, &len) != 0) {
        int kept = errno;
        if (fd >= 0)
            close(fd);
        errno = kept;
        return -1;
    }
    *port = ntohs(address.sin_port);
    return fd;
}

static _Noreturn void be_server(int listener, pid_t parent)
{
    static struct server server;
    struct epoll_event event = {.events = EPOLLIN};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1UL);
    if (getppid() != parent)
        _exit(0);
    server.listener = listener;
    server.epoll = epoll_create1(EPOLL_CLOEXEC);
    server.event_len = (size_t)snprintf(server.block, sizeof(server.block),
                                        "1a\r\ndata: {\"token\":\" token\"}\n\n\r\n");
    for (int i = 1; i < FLOOD_EVENTS; i++)
        memcpy(server.block + (size_t)i * server.event_len, server.block, server.event_len);
    server.block_len = server.event_len * FLOOD_EVENTS;
    if (server.epoll < 0 || epoll_ctl(server.epoll, EPOLL_CTL_ADD, listener, &event) != 0)
        _exit(1);
    serve(&server);
    _exit(0);
}

int writer_start(struct writer *writer)
{
    pid_t parent = getpid();
    int listener = listen_on_loopback(&writer->port);

    writer->pid = 0;
    if (listener < 0)
        return -1;
    writer->pid = fork();
    if (writer->pid == 0)
        be_server(listener, parent);
    close(listener);
    if (writer->pid < 0) {
        writer->pid = 0;
        return -1;
    }
    return 0;
}

void writer_stop(struct writer *writer)
{
    if (writer->pid == 0)
        return;
    kill(writer->pid, SIGKILL);
    waitpid(writer->pid, NULL, 0);
    writer->pid = 0;
}
