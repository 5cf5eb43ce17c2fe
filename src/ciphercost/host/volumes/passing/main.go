// passing: passes files through FUSE and does nothing to them: what gocryptfs is without its encryption.
//
//	passing DIRECTORY MOUNTPOINT
//
// It is built on the library that gocryptfs is built on, and asks the kernel for what gocryptfs with allow_other and kernel_cache asks
// for. It stays in the foreground and ends when it is unmounted.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is go-fuse's own passing node, but for what gocryptfs does otherwise.
type node struct{ fs.LoopbackNode }

func (n *node) path() string {
	return filepath.Join(n.RootData.Path, n.Path(n.Root()))
}

// Each write makes the kernel ask for this one; gocryptfs has the same answer at hand.
func (n *node) Getxattr(ctx context.Context, name string, to []byte) (uint32, syscall.Errno) {
	if name == "security.capability" {
		return 0, syscall.EOPNOTSUPP
	}
	return n.LoopbackNode.Getxattr(ctx, name, to)
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	fd, err := syscall.Open(n.path(), mangled(flags)|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, 0, fs.ToErrno(err)
	}
	return &file{fd, fs.NewLoopbackFile(fd)}, fuse.FOPEN_KEEP_CACHE, 0
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	path := filepath.Join(n.path(), name)
	fd, err := syscall.Open(path, mangled(flags)|syscall.O_CREAT|syscall.O_EXCL|syscall.O_NOFOLLOW, mode)
	if err != nil {
		return nil, nil, 0, fs.ToErrno(err)
	}
	if caller, known := fuse.FromContext(ctx); known && os.Getuid() == 0 {
		err = syscall.Fchown(fd, int(caller.Uid), int(caller.Gid))
	}
	status := syscall.Stat_t{}
	if err == nil {
		err = syscall.Fstat(fd, &status)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, nil, 0, fs.ToErrno(err)
	}
	out.FromStat(&status)
	made := n.RootData.NewNode(n.RootData, n.EmbeddedInode(), name, &status)
	inode := n.NewInode(ctx, made, fs.StableAttr{Mode: status.Mode, Gen: 1, Ino: status.Ino})
	return inode, &file{fd, fs.NewLoopbackFile(fd)}, 0, 0
}

// Of files and directories; like gocryptfs, which opens them anew for it and doesn't tell fdatasync from fsync.
func (n *node) Fsync(ctx context.Context, _ fs.FileHandle, flags uint32) syscall.Errno {
	fd, err := syscall.Open(n.path(), syscall.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fs.ToErrno(err)
	}
	defer syscall.Close(fd)
	return fs.ToErrno(syscall.Fsync(fd))
}

// mangled makes of a caller's flags those that a daemon can work with: no O_DIRECT, as its memory isn't aligned; no O_APPEND, as the
// kernel says where; and reading where there is writing, as gocryptfs must for blocks that are written in part.
func mangled(flags uint32) int {
	if flags&syscall.O_ACCMODE == syscall.O_WRONLY {
		flags = flags&^syscall.O_ACCMODE | syscall.O_RDWR
	}
	return int(flags &^ (syscall.O_DIRECT | syscall.O_APPEND | syscall.O_CREAT))
}

// file reads into memory and writes out of it, several at a time, as gocryptfs does; go-fuse's own takes turns, and splices.
type file struct {
	fd    int
	other fs.FileHandle
}

func (f *file) Read(ctx context.Context, to []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	size, err := syscall.Pread(f.fd, to, at)
	if err != nil {
		return nil, fs.ToErrno(err)
	}
	return fuse.ReadResultData(to[:size]), 0
}

func (f *file) Write(ctx context.Context, data []byte, at int64) (uint32, syscall.Errno) {
	size, err := syscall.Pwrite(f.fd, data, at)
	return uint32(max(size, 0)), fs.ToErrno(err)
}

func (f *file) Allocate(ctx context.Context, at, size uint64, mode uint32) syscall.Errno {
	if mode > 1 {
		return syscall.EOPNOTSUPP // as gocryptfs: no holes, no zeros
	}
	return fs.ToErrno(syscall.Fallocate(f.fd, mode, int64(at), int64(size)))
}

func (f *file) Release(ctx context.Context) syscall.Errno {
	return f.other.(fs.FileReleaser).Release(ctx)
}

func (f *file) Flush(ctx context.Context) syscall.Errno {
	return f.other.(fs.FileFlusher).Flush(ctx)
}

func (f *file) Getattr(ctx context.Context, out *fuse.AttrOut) syscall.Errno {
	return f.other.(fs.FileGetattrer).Getattr(ctx, out)
}

func (f *file) Setattr(ctx context.Context, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return f.other.(fs.FileSetattrer).Setattr(ctx, in, out)
}

func run(directory, place string) error {
	status := syscall.Stat_t{}
	if err := syscall.Stat(directory, &status); err != nil {
		return err
	}
	root := &fs.LoopbackRoot{Path: directory, Dev: uint64(status.Dev)}
	root.NewNode = func(data *fs.LoopbackRoot, _ *fs.Inode, _ string, _ *syscall.Stat_t) fs.InodeEmbedder {
		return &node{fs.LoopbackNode{RootData: data}}
	}
	second := time.Second
	options := &fs.Options{
		AttrTimeout:     &second,
		EntryTimeout:    &second,
		NegativeTimeout: &second,
		NullPermissions: true,
		MountOptions: fuse.MountOptions{
			AllowOther:  true,
			DirectMount: true,
			MaxWrite:    fuse.MAX_KERNEL_WRITE,
			FsName:      directory,
			Name:        "passing",
			Options:     []string{"default_permissions"},
		},
	}
	server, err := fs.Mount(place, root.NewNode(root, nil, "", &status), options)
	if err != nil {
		return err
	}
	syscall.Umask(0)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-asked
		if server.Unmount() != nil {
			syscall.Unmount(place, syscall.MNT_DETACH)
		}
	}()
	server.Wait()
	return nil
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: passing DIRECTORY MOUNTPOINT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
