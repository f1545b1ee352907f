# One and two processes: what grows with the streams.
load "style.gp"
set key noautotitle
set terminal terminal_name size 1000,900
set multiplot layout 3, 1
set style data linespoints
set key left top reverse Left
set logscale x
set xrange [8:14000]
set ylabel "tokens a second"
set yrange [0:*]
plot "runnel.tsv" using 2:3 ls 1 title "one process", "runnel-2.tsv" using 2:3 ls 2 title "two processes"
set ylabel "p99 of gaps, over, ms"
plot "runnel.tsv" using 2:6 ls 1 title "one process", "runnel-2.tsv" using 2:6 ls 2 title "two processes"
set ylabel "MiB resident"
set xlabel "streams, a token every 200 ms each"
plot "runnel.tsv" using 2:($7/1024) ls 1 title "one process", "runnel-2.tsv" using 2:($7/1024) ls 2 title "two processes"
unset multiplot
