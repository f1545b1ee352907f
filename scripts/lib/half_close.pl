# Sends a GET, closes the sending side when the reply begins (or after half a second: behind a buffer
# none does), and prints what comes: perl half_close.pl HOST[:PORT] PATH [SOCKET]
# Neither curl nor a shell can close one side; perl is in every Debian. A close that arrives with the
# request is another question: HAProxy answers it with 400, Caddy by chance with 499.
use strict;
use warnings;
use Socket qw(SHUT_WR);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;

my ($host, $path, $socket) = @ARGV;
$SIG{ALRM} = sub { die "half_close: nothing more came for 20 s\n" };
alarm 20;
my $peer = $host =~ /:\d+$/ ? $host : "$host:80";
my $connection = $socket ? IO::Socket::UNIX->new(Peer => $socket) : IO::Socket::INET->new(PeerAddr => $peer);
die "half_close: cannot connect to " . ($socket // $peer) . ": $!\n" unless $connection;
$connection->syswrite("GET $path HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n");
IO::Select->new($connection)->can_read(0.5);
$connection->shutdown(SHUT_WR);
while (sysread($connection, my $part, 65536)) {
    print $part;
}
