# Servers behind the same nginx: what a token costs, and how many come.
load "style.gp"
set key noautotitle
set terminal terminal_name size 1000,800
set multiplot layout 2, 1
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 noborder
set key right top reverse Left
set yrange [0:*]
set ylabel "CPU of server and nginx, us a token"
only(level) = "< awk -F '\\t' '$1 ~ /^(100|1000|5000):/' " . level
plot only("runnel.tsv") using 5:xtic(1) ls 1 title "runnel", only("floor.tsv") using 5 ls 6 title "bare write(2)", \
    only("node.tsv") using 5 ls 2 title "Node.js", only("starlette.tsv") using 5 ls 4 title "Starlette"
set key right top
set ylabel "tokens that came, % of those asked for"
set yrange [0:115]
set xlabel "streams : milliseconds between tokens"
plot only("runnel.tsv") using 4:xtic(1) ls 1 title "runnel", only("floor.tsv") using 4 ls 6 title "bare write(2)", \
    only("node.tsv") using 4 ls 2 title "Node.js", only("starlette.tsv") using 4 ls 4 title "Starlette"
unset multiplot
