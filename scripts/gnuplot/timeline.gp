# Each token is a dot where it arrived: a slope is a stream, a staircase a buffer. The thin line is
# when the server sent them.
load "style.gp"
set key left top reverse Left
set xlabel "seconds since the request was sent"
set ylabel "tokens received"
set xrange [0:*]
set yrange [0:*]
plot for [i = 1:words(files)] word(files, i).".timeline" index 1 using 1:2 with lines lw 1 lc rgb "#999999", \
     for [i = 1:words(files)] word(files, i).".timeline" index 0 using 1:2 with points ls i
