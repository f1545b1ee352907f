# Reads curl's trace and prints what may be kept of it: the times and sizes of all that was sent and
# received, the bytes of what was received. The request (its headers, its body) and curl's remarks,
# which repeat them over HTTP/2, may hold a key; so may a cookie that is set.

/^[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\.[0-9]+ / {
    public = $2 == "<="
    if ($2 == "==")
        next
    print
    next
}

/^0000: / && tolower(substr($0, 55)) ~ /^set-cookie/ { public = 0 }

public
