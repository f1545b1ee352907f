# Two servers under the same load: requests that wait for a slot, and tokens that nobody reads.
load "style.gp"
set multiplot layout 2, 1
set key left top reverse Left
set xlabel ""
set ylabel "requests waiting"
set yrange [0:*]
plot "ignores.tsv" using 1:3 with lines ls 2 title "does not notice", "notices.tsv" using 1:3 with lines ls 1 title "notices"
set xlabel "seconds"
set ylabel "tokens nobody read"
plot "ignores.tsv" using 1:5 with lines ls 2 title "does not notice", "notices.tsv" using 1:5 with lines ls 1 title "notices"
unset multiplot
