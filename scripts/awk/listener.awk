# Reads /proc/net/tcp and tcp6: prints the inode of the socket that listens on 127.0.0.1:PORT, or on an
# address that includes it. awk -v port=1FEA (four hex digits, upper case)
#
#   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode

$4 == "0A" {
    split($2, local, ":")
    if (local[2] == port && (local[1] == "0100007F" || local[1] ~ /^0+$/ ||
                             local[1] == "0000000000000000FFFF00000100007F")) {
        print $10
        exit
    }
}
