package main

import (
	"os"
	"runtime/metrics"
	"time"

	"golang.org/x/sys/unix"
)

// All times are nanoseconds since this moment, by the monotonic clock; they are never 0.
var origin = time.Now().Add(-time.Second)

func now() int64 { return int64(time.Since(origin)) }

// alarm wakes a goroutine on time. Go's own timers round to the milliseconds of epoll, which would add to the measured latency;
// those of the kernel make a file readable, and Go wakes whoever reads it.
type alarm struct {
	file *os.File
	fd   int
}

// wake is the value of a kernel's timer: how often it has expired.
type wake [8]byte

func (a *alarm) sleepUntil(due int64) {
	if due <= now() {
		return
	}
	if a.file == nil {
		a.open()
	}
	for left := due - now(); left > 0; left = due - now() {
		if a.file == nil {
			time.Sleep(time.Duration(left)) // no file was left
			continue
		}
		var spent wake
		setting := unix.ItimerSpec{Value: unix.NsecToTimespec(left)}
		if unix.TimerfdSettime(a.fd, 0, &setting, nil) != nil {
			a.close()
		} else if _, err := a.file.Read(spent[:]); err != nil {
			a.close()
		}
	}
}

// sleepAbout sleeps until then, or a millisecond longer.
func sleepAbout(due int64) { time.Sleep(time.Duration(due - now())) }

func (a *alarm) open() {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err == nil {
		a.fd, a.file = fd, os.NewFile(uintptr(fd), "timer")
	}
}

func (a *alarm) close() {
	if a.file != nil {
		_ = a.file.Close()
		a.file = nil
	}
}

// cpuTime of this process, in nanoseconds. The total is exact; the kernel samples its split.
//
// Go moves its clients between threads, and its threads also wait for the network and collect garbage for them: only the process is known.
type cpuTime struct{ total, user int64 }

func cpuNow() cpuTime {
	var clock unix.Timespec
	var usage unix.Rusage
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &clock) != nil || unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return cpuTime{}
	}
	return cpuTime{clock.Nano(), usage.Utime.Nano()}
}

func (c cpuTime) since(earlier cpuTime) cpuTime {
	total := max(0, c.total-earlier.total)
	return cpuTime{total, max(0, min(total, c.user-earlier.user))}
}

// threadCPU is the CPU time of the calling thread, which the caller must have locked.
func threadCPU() int64 {
	var clock unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &clock)
	return clock.Nano()
}

// collecting is the time that Go's processors have spent on collecting garbage, in nanoseconds, as it estimates it.
func collecting() int64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64 {
		return 0
	}
	return int64(sample[0].Value.Float64() * 1e9)
}
