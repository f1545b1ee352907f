# Sends a GET, closes the sending side, and prints what comes: perl half_close.pl HOST[:PORT] PATH [SOCKET]
# Neither curl nor a shell can close one side; perl is in every Debian.
use strict;
use warnings;
use Socket qw(SHUT_WR);
use IO::Socket::INET;
use IO::Socket::UNIX;

my ($host, $path, $socket) = @ARGV;
$SIG{ALRM} = sub { die "half_close: nothing more came for 20 s\n" };
alarm 20;
my $peer = $host =~ /:\d+$/ ? $host : "$host:80";
my $connection = $socket ? IO::Socket::UNIX->new(Peer => $socket) : IO::Socket::INET->new(PeerAddr => $peer);
die "half_close: cannot connect to " . ($socket // $peer) . ": $!\n" unless $connection;
$connection->syswrite("GET $path HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n");
$connection->shutdown(SHUT_WR);
while (sysread($connection, my $part, 65536)) {
    print $part;
}
