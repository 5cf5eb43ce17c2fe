"""The results book: check records of runs, pack them to share, and build a static site from them.

archive    a packed record: safe to unpack, and the same bytes each time it is packed
private    what a record holds of its machine and user beside the measurement, and how it is left out
check      does the result follow from the slices?
find       the runs that the arguments name
rows       a row of the front page's table for each cell
pages      the pages, as text
site       the whole site
"""
