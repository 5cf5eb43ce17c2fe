package main

import "golang.org/x/sys/unix"

// Files that stay free.
const spareFiles = 32

// files refuses an arm that needs more open files than the process may have. Go has raised its limit to the hard limit.
//
// A connection has its socket, and a timer if it sleeps or waits for when it is due; with `per_request` the next one may open before the last
// is closed.
func (s *session) files(name string, connections, threads int, perRequest bool) *Failure {
	need := filesOf(connections, threads, perRequest)
	for other, arm := range s.arms {
		if other != name && arm.pool != nil {
			need += filesOf(len(arm.links), arm.threads, arm.pool.perRequest)
		}
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil && uint64(need+spareFiles) > limit.Cur {
		return fail("connect", "the connections need %d open files, and this process may have %d; raise the limit (ulimit -n), or use fewer "+
			"connections", need+spareFiles, limit.Cur)
	}
	return nil
}

func filesOf(connections, threads int, perRequest bool) int {
	each := 2
	if perRequest {
		each = 3
	}
	return connections*each + threads
}
