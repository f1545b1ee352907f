/* The listening socket. */

#include "fastcgi/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fastcgi/tcp.h"

enum { BACKLOG = 4096 }; /* the kernel lowers it to net.core.somaxconn */

static int fail(char error[LISTENER_ERROR_MAX_BYTES], const char *where, const char *why)
{
    snprintf(error, LISTENER_ERROR_MAX_BYTES, "--listen: cannot listen on `%.120s`: %s", where,
             why);
    return -1;
}

/* A socket file that nobody listens on any more stays behind after kill -9. */
static bool is_abandoned(const struct sockaddr_un *address)
{
    struct stat status;

    if (lstat(address->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool refused = connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 &&
                   errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static int open_unix(struct listener *listener, const char *where, const char *path,
                     unsigned mode, char error[LISTENER_ERROR_MAX_BYTES])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, path, strlen(path));
    if (is_abandoned(&address))
        unlink(path);
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0)
        return fail(error, where, strerror(errno));
    /* The mode goes on the socket before anybody can connect: it listens after that only. */
    if (bind(listener->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        return fail(error, where, strerror(errno));
    memcpy(listener->unlink_path, path, strlen(path) + 1);
    if (chmod(path, mode) != 0 || listen(listener->fd, BACKLOG) != 0)
        return fail(error, where, strerror(errno));
    return 0;
}

/* "HOST:PORT", "[V6]:PORT"; the host may not be left out, so nothing listens everywhere by
 * accident. */
static int split_address(const char *where, char host[256], char port[16])
{
    const char *colon = strrchr(where, ':');

    if (colon == NULL || colon == where || strlen(colon + 1) > 5 || colon[1] == '\0' ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        strtoul(colon + 1, NULL, 10) > 65535) /* getaddrinfo would take it modulo 65536 */
        return -1;
    size_t len = (size_t)(colon - where);
    if (where[0] == '[' && where[len - 1] == ']') {
        where++;
        len -= 2;
    }
    if (len == 0 || len >= 256)
        return -1;
    memcpy(host, where, len);
    host[len] = '\0';
    snprintf(port, 16, "%s", colon + 1);
    return 0;
}

static int open_tcp(struct listener *listener, const char *where,
                    char error[LISTENER_ERROR_MAX_BYTES])
{
    char host[256];
    char port[16];
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    int on = 1;

    split_address(where, host, port); /* listener_check has seen it */
    int status = getaddrinfo(host, port, &hints, &found);
    if (status != 0)
        return fail(error, where, gai_strerror(status));
    listener->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool listens = listener->fd >= 0 &&
                   setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
                   bind(listener->fd, found->ai_addr, found->ai_addrlen) == 0 &&
                   listen(listener->fd, BACKLOG) == 0;
    int why = errno;
    freeaddrinfo(found);
    return listens ? 0 : fail(error, where, strerror(why));
}

static int inherit(struct listener *listener, char error[LISTENER_ERROR_MAX_BYTES])
{
    int listens = 0;
    socklen_t len = sizeof(listens);

    if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) != 0 || !listens) {
        snprintf(error, LISTENER_ERROR_MAX_BYTES,
                 "descriptor 0 is no listening socket: start runnel by spawn-fcgi, or give "
                 "--listen unix:PATH or HOST:PORT");
        return -1;
    }
    listener->fd = STDIN_FILENO;
    fcntl(listener->fd, F_SETFL, fcntl(listener->fd, F_GETFL) | O_NONBLOCK);
    fcntl(listener->fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

int listener_check(const char *where, char error[LISTENER_ERROR_MAX_BYTES])
{
    char host[256];
    char port[16];

    if (where[0] == '\0')
        return 0;
    if (strncmp(where, "unix:", 5) == 0) {
        size_t len = strlen(where + 5);
        if (len < 1 || len >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
            return fail(error, where, "a path of 1 to 107 bytes is needed");
    } else if (split_address(where, host, port) != 0) {
        return fail(error, where, "it takes unix:PATH or HOST:PORT");
    }
    return 0;
}

int listener_open(struct listener *listener, const char *where, unsigned mode,
                  int64_t peer_timeout_us, char error[LISTENER_ERROR_MAX_BYTES])
{
    int result;

    *listener = (struct listener){.fd = -1};
    if (listener_check(where, error) != 0)
        return -1;
    if (where[0] == '\0')
        result = inherit(listener, error);
    else if (strncmp(where, "unix:", 5) == 0)
        result = open_unix(listener, where, where + 5, mode, error);
    else
        result = open_tcp(listener, where, error);
    if (result == 0 && tcp_set_options(listener->fd, peer_timeout_us) != 0) {
        snprintf(error, LISTENER_ERROR_MAX_BYTES,
                 "--peer-timeout-s: the socket does not take it: %s", strerror(errno));
        result = -1;
    }
    if (result != 0)
        listener_close(listener);
    return result;
}

void listener_close(struct listener *listener)
{
    if (listener->fd >= 0)
        close(listener->fd);
    listener->fd = -1;
    if (listener->unlink_path[0] != '\0')
        unlink(listener->unlink_path);
    listener->unlink_path[0] = '\0';
}
