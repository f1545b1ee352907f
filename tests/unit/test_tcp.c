/*
 * tcp: what an accepted connection has of its listener's options, on the loopback, and that
 * other sockets are left alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fastcgi/tcp.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct pair {
    int listener, client, accepted;
};

static void pair_listen(struct pair *pair)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    pair->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(pair->listener, (const struct sockaddr *)&address, sizeof(address)),
                     0);
    assert_int_equal(listen(pair->listener, 1), 0);
}

static void pair_connect(struct pair *pair)
{
    struct sockaddr_in address;
    socklen_t len = sizeof(address);

    assert_int_equal(getsockname(pair->listener, (struct sockaddr *)&address, &len), 0);
    pair->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(pair->client, (struct sockaddr *)&address, len), 0);
}

static void pair_accept(struct pair *pair)
{
    pair->accepted = accept4(pair->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(pair->accepted >= 0);
}

static void pair_open(struct pair *pair, int64_t peer_timeout_us)
{
    pair_listen(pair);
    assert_int_equal(tcp_set_options(pair->listener, peer_timeout_us), 0);
    pair_connect(pair);
    pair_accept(pair);
}

static void pair_close(struct pair *pair)
{
    close(pair->accepted);
    close(pair->client);
    close(pair->listener);
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);

    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

/* A silent peer is asked from half the time on, and is gone when the time is over, or at the
 * next whole second. */
static void test_what_a_connection_inherits(void **state)
{
    static const struct {
        int64_t peer_timeout_us;
        int user_timeout_ms, idle_s, interval_s;
    } rows[] = {
        {10000000, 10000, 5, 1},
        {60000000, 60000, 30, 6},
        {2000000, 2000, 1, 1},
        {1000, 1, 1, 1},
        {1500001, 1501, 1, 1},
        {11000000, 11000, 6, 2},
        {1, 1, 1, 1}, /* no setting is that small */
        {3600000000, 3600000, 1800, 360},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct pair pair;

        pair_open(&pair, rows[row].peer_timeout_us);
        assert_true(option(pair.accepted, IPPROTO_TCP, TCP_NODELAY));
        assert_true(option(pair.accepted, SOL_SOCKET, SO_KEEPALIVE));
        assert_int_equal(option(pair.accepted, IPPROTO_TCP, TCP_USER_TIMEOUT),
                         rows[row].user_timeout_ms);
        assert_int_equal(option(pair.accepted, IPPROTO_TCP, TCP_KEEPIDLE), rows[row].idle_s);
        assert_int_equal(option(pair.accepted, IPPROTO_TCP, TCP_KEEPINTVL),
                         rows[row].interval_s);
        assert_int_equal(option(pair.accepted, IPPROTO_TCP, TCP_KEEPCNT), 5);
        assert_int_equal(tcp_peer_timeout_ms(pair.accepted), rows[row].user_timeout_ms);
        pair_close(&pair);
    }
}

/* A web server that connects while the program is still starting. */
static void test_who_connected_before_the_listener_was_set_up(void **state)
{
    struct pair pair;

    (void)state;
    pair_listen(&pair);
    pair_connect(&pair);
    assert_int_equal(tcp_set_options(pair.listener, 10000000), 0);
    pair_accept(&pair);
    assert_int_equal(tcp_peer_timeout_ms(pair.accepted), 0);
    assert_int_equal(tcp_set_options(pair.accepted, 10000000), 0);
    assert_int_equal(tcp_peer_timeout_ms(pair.accepted), 10000);
    assert_true(option(pair.accepted, IPPROTO_TCP, TCP_NODELAY));
    assert_true(option(pair.accepted, SOL_SOCKET, SO_KEEPALIVE));
    pair_close(&pair);
}

static void test_no_peer_timeout(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair, 0);
    assert_true(option(pair.accepted, IPPROTO_TCP, TCP_NODELAY));
    assert_false(option(pair.accepted, SOL_SOCKET, SO_KEEPALIVE));
    assert_int_equal(tcp_peer_timeout_ms(pair.accepted), 0);
    tcp_limit_writing(pair.accepted, 0, true);
    assert_int_equal(option(pair.accepted, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    pair_close(&pair);
}

static void test_the_limit_is_taken_off_and_put_back(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair, 10000000);
    unsigned ms = tcp_peer_timeout_ms(pair.accepted);
    tcp_limit_writing(pair.accepted, ms, false);
    assert_int_equal(option(pair.accepted, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    assert_true(option(pair.accepted, SOL_SOCKET, SO_KEEPALIVE)); /* silence stays bounded */
    tcp_limit_writing(pair.accepted, ms, true);
    assert_int_equal(option(pair.accepted, IPPROTO_TCP, TCP_USER_TIMEOUT), 10000);
    pair_close(&pair);
}

/* Until the peer's window is shut, everything is sent; beyond it, bytes wait. */
static void test_unsent_bytes(void **state)
{
    static const char bytes[65536];
    struct pair pair;

    (void)state;
    pair_open(&pair, 10000000);
    assert_false(tcp_has_unsent(pair.accepted));
    while (send(pair.accepted, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        continue;
    assert_true(tcp_has_unsent(pair.accepted));
    pair_close(&pair);
}

static void test_unix_sockets_are_left_alone(void **state)
{
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(tcp_set_options(fds[0], 10000000), 0);
    assert_false(option(fds[0], SOL_SOCKET, SO_KEEPALIVE));
    assert_int_equal(tcp_peer_timeout_ms(fds[0]), 0);
    assert_false(tcp_has_unsent(fds[0]));
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_connection_inherits),
        cmocka_unit_test(test_who_connected_before_the_listener_was_set_up),
        cmocka_unit_test(test_no_peer_timeout),
        cmocka_unit_test(test_the_limit_is_taken_off_and_put_back),
        cmocka_unit_test(test_unsent_bytes),
        cmocka_unit_test(test_unix_sockets_are_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
