# How long a reader waits for the next token: the share of the gaps that are at most x. A steady
# stream is one steep step at its pace; a buffer is a step at 0 and a long wait.
load "style.gp"
set key left top reverse Left
set logscale x
set format x "%g"
set xlabel "gap between tokens, ms (below 0.01 ms is drawn at 0.01)"
set ylabel "share of the gaps that are not longer"
set xrange [0.009:*]
set yrange [0:1.02]
set format y "%.1f"
plot for [i = 1:words(files)] word(files, i).".gaps" using 1:2 with steps ls i
