/* One look-up, one connection. */

#include "gen/load/target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <curl/curl.h>

enum { CONNECT_MS = 5000 };

/* 0, or -1 with errno. */
static int try_connect(int family, const struct sockaddr *address, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    socklen_t error_len = sizeof(error);

    if (fd < 0)
        return -1;
    int status = connect(fd, address, len);
    /* A full backlog of a Unix socket says EAGAIN: somebody listens. */
    if (status != 0 && errno == EAGAIN && family == AF_UNIX)
        status = 0;
    if (status != 0 && errno == EINPROGRESS) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        error = ETIMEDOUT;
        if (poll(&wait, 1, CONNECT_MS) == 1)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
        status = error == 0 ? 0 : -1;
        errno = error;
    }
    int kept = errno;
    close(fd);
    errno = kept;
    return status;
}

static enum target_status find_socket(const char *path, char why[TARGET_WHY_MAX_BYTES])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path)) {
        snprintf(why, TARGET_WHY_MAX_BYTES,
                 "--unix-socket: a path of %zu bytes, at most %zu are allowed", strlen(path),
                 sizeof(address.sun_path) - 1);
        return TARGET_BAD_URL;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (try_connect(AF_UNIX, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return TARGET_FOUND;
    snprintf(why, TARGET_WHY_MAX_BYTES, "nothing answers at %s (%s)", path, strerror(errno));
    return TARGET_NO_ANSWER;
}

static void keep_address(struct target *target, const struct addrinfo *found)
{
    if (found->ai_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const void *)found->ai_addr;
        char text[INET6_ADDRSTRLEN];
        inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
        snprintf(target->address, sizeof(target->address), "[%s]", text);
    } else {
        const struct sockaddr_in *four = (const void *)found->ai_addr;
        inet_ntop(AF_INET, &four->sin_addr, target->address, sizeof(target->address));
        target->is_loopback_v4 = ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
}

static enum target_status find_host(struct target *target, const char *host, const char *port,
                                    char why[TARGET_WHY_MAX_BYTES])
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char bare[256];
    size_t len = strlen(host);

    /* curl keeps the brackets of an IPv6 address. */
    if (host[0] == '[' && len > 2 && len < sizeof(bare)) {
        memcpy(bare, host + 1, len - 2);
        bare[len - 2] = '\0';
        host = bare;
    }
    int status = getaddrinfo(host, port, &hints, &found);
    if (status != 0) {
        snprintf(why, TARGET_WHY_MAX_BYTES, "%.100s cannot be looked up (%s)", host,
                 gai_strerror(status));
        return TARGET_NO_ANSWER;
    }
    enum target_status answer = TARGET_NO_ANSWER;
    for (struct addrinfo *at = found; at != NULL && answer != TARGET_FOUND; at = at->ai_next) {
        if (at->ai_family != AF_INET && at->ai_family != AF_INET6)
            continue;
        if (try_connect(at->ai_family, at->ai_addr, at->ai_addrlen) == 0) {
            keep_address(target, at);
            answer = TARGET_FOUND;
        } else {
            snprintf(why, TARGET_WHY_MAX_BYTES, "nothing answers at %.100s port %s (%s)", host,
                     port, strerror(errno));
        }
    }
    freeaddrinfo(found);
    return answer;
}

/* The parts of a URL are curl's to be freed. */
static enum target_status find_parts(struct target *target, const struct options *options,
                                     CURLU *parts, char why[TARGET_WHY_MAX_BYTES])
{
    char *scheme = NULL;
    char *host = NULL;
    char *port = NULL;
    enum target_status status = TARGET_BAD_URL;

    if (curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
        curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK ||
        (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        snprintf(why, TARGET_WHY_MAX_BYTES, "the URL is not http://HOST.. or https://HOST..");
    else if (options->unix_socket != NULL)
        status = find_socket(options->unix_socket, why);
    else
        status = find_host(target, host, port, why);
    target->is_tls = scheme != NULL && strcmp(scheme, "https") == 0;
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    return status;
}

enum target_status target_find(struct target *target, const struct options *options,
                               const char *url, char why[TARGET_WHY_MAX_BYTES])
{
    CURLU *parts = curl_url();
    enum target_status status = TARGET_BAD_URL;

    *target = (struct target){.address = ""};
    why[0] = '\0';
    CURLUcode code = parts == NULL
                         ? CURLUE_OUT_OF_MEMORY
                         : curl_url_set(parts, CURLUPART_URL, url, CURLU_DEFAULT_SCHEME);
    if (code != CURLUE_OK)
        snprintf(why, TARGET_WHY_MAX_BYTES, "the URL `%.120s` is not allowed: %s", url,
                 curl_url_strerror(code));
    else
        status = find_parts(target, options, parts, why);
    curl_url_cleanup(parts);
    return status;
}
