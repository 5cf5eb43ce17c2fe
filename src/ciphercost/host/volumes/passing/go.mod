module passing

go 1.21

require github.com/hanwen/go-fuse/v2 v2.4.2
