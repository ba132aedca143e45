# Makes of NAME.svg the picture for a dark page: sed -f dark.sed NAME.svg >NAME-dark.svg
s/#ffffff/#0d1117/g
s/#1f2328/#e6edf3/g
s/#d1d9e0/#3d444d/g
s/#d1242f/#ff7b72/g
s/#57606a/#9ea7b3/g
s/#0969da/#58a6ff/g
