# The times of curl's traces, for the awk programs that read them.

# Microseconds. curl prints local time without a date: a step back is midnight. The leading 1s:
# busybox awk takes "08" and "001000" for octal numbers.
function clock(t,    p, us) {
    split(t, p, /[:.]/)
    us = (((("1" p[1]) - 100) * 60 + ("1" p[2]) - 100) * 60 + ("1" p[3]) - 100) * 1000000 + \
         ("1" substr(p[4] "000000", 1, 6)) - 1000000
    if (us + DAY_US < CLOCK_US)
        DAY_US += 86400 * 1000000
    CLOCK_US = us + DAY_US
    return CLOCK_US
}

# mawk would print 3e+09 for 50 minutes.
function micros(t) {
    return sprintf("%.0f", t)
}
