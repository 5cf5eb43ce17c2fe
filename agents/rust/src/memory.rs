//! Returns memory to the kernel that glibc would keep for later.

/// Has blocks of 128 KiB and more, like a slice's histograms, returned to the kernel as soon as they are free. glibc would
/// raise that limit after the first of them and put the next on its heap, where small blocks behind them keep it from
/// shrinking: in a long run memory would grow.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointer. If it fails, glibc does as before.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}

/// Returns what lies unused between blocks in use. Thousands of handshakes leave some behind, and a slice's short-lived blocks
/// (operations, the encoder's tables) lie in other gaps of the heap each time, so that ever more of its pages would stay resident.
pub fn return_unused() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointer.
    unsafe {
        libc::malloc_trim(0);
    }
}
