Command exited with non-zero status 127
1260 KiB 0.00+0.00 s: walk -j 8 --type d
