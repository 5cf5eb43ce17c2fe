//! Stops the process that holds more memory than any input may take. libFuzzer sees only pages that were touched.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

const MOST_BYTES: usize = 256 << 20;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
static HELD: AtomicUsize = AtomicUsize::new(0);

impl Counting {
    fn add(&self, bytes: usize) {
        let held = HELD.fetch_add(bytes, Ordering::Relaxed);
        if held.saturating_add(bytes) > MOST_BYTES {
            HELD.store(0, Ordering::Relaxed); // the report allocates too
            panic!("the agent holds {held} bytes and asks for {bytes} more");
        }
    }

    fn take(&self, bytes: usize) {
        let _ = HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| Some(held.saturating_sub(bytes)));
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller's promises to this function are those that the system's allocator needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller's promises to this function are those that the system's allocator needs.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.take(layout.size());
        // SAFETY: the caller's promises to this function are those that the system's allocator needs.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.add(size);
        self.take(layout.size());
        // SAFETY: the caller's promises to this function are those that the system's allocator needs.
        unsafe { System.realloc(at, layout, size) }
    }
}
