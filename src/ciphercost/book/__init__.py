"""The results book: check records of runs, pack them to share, and build a static site from them.

check      does the result follow from the slices?
find       the runs that the arguments name
rows       a row of the front page's table for each cell
pages      the pages, as text
site       the whole site
"""
