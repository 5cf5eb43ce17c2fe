//! Which CPU instructions OpenSSL uses here (a mask in the environment, `OPENSSL_ia32cap`, hides some of them), and which CPUs threads
//! run on.

use std::ffi::{CStr, c_char, c_int};

const OPENSSL_INFO_CPU_SETTINGS: c_int = 1008;
/// Bits in the first word of `OPENSSL_ia32cap` and in `OPENSSL_armcap`.
const X86_AES: u64 = 1 << 57;
const ARM_AES: u64 = 1 << 2;

unsafe extern "C" {
    fn OPENSSL_info(what: c_int) -> *const c_char;
}

/// Whether OpenSSL encrypts AES with the CPU's own instructions: the CPU has them and no mask hides them.
pub fn aes_instructions() -> bool {
    // Some linkers leave out the initializer in which OpenSSL looks at the CPU; then it does so here.
    openssl::init();
    // SAFETY: the function takes any number and returns a static string or null.
    let settings = unsafe {
        let text = OPENSSL_info(OPENSSL_INFO_CPU_SETTINGS);
        if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    };
    aes_in(&settings)
}

/// Reads `OPENSSL_ia32cap=0x7ffa…:0x18c0… env:…` or `OPENSSL_armcap=0x3d`.
fn aes_in(settings: &str) -> bool {
    let Some((name, values)) = settings.split_once('=') else { return false };
    let first = values.split([':', ' ']).next().unwrap_or_default().trim_start_matches("0x");
    let word = u64::from_str_radix(first, 16).unwrap_or(0);
    match name {
        "OPENSSL_ia32cap" => word & X86_AES != 0,
        "OPENSSL_armcap" => word & ARM_AES != 0,
        _ => false,
    }
}

/// A CPU for each of several threads, if this process may use as many: then a thread runs where its memory is. None: the
/// kernel decides.
pub fn one_for_each(threads: usize) -> Option<Vec<usize>> {
    // SAFETY: the kernel fills the set, whose size is given.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of_val(&set), &mut set) != 0 {
            return None;
        }
        set
    };
    // SAFETY: each number lies within the set.
    let mut cpus: Vec<usize> =
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect();
    cpus.truncate(threads);
    (threads > 1 && cpus.len() == threads).then_some(cpus)
}

/// Keeps this thread, and the threads that it starts, on a CPU. If that fails, the kernel decides.
pub fn stay_on(cpu: usize) {
    // SAFETY: the number lies within the set (`one_for_each`); the kernel reads the set, whose size is given.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bit_of_aes_is_found_and_its_absence_too() {
        assert!(aes_in("OPENSSL_ia32cap=0x7ffaf3ffffebffff:0x18c05fdef3bfa7eb"));
        assert!(!aes_in("OPENSSL_ia32cap=0x5cf8f3fdffebffff:0x1 env:~0x200000200000000:~0x60000000000"));
        assert!(aes_in("OPENSSL_armcap=0x3d"));
        assert!(!aes_in("OPENSSL_armcap=0x1"));
        assert!(!aes_in(""));
    }

    #[test]
    fn threads_get_cpus_of_their_own_if_there_are_enough() {
        let all = std::thread::available_parallelism().unwrap().get();
        assert_eq!((one_for_each(1), one_for_each(all + 1)), (None, None));
        if let Some(cpus) = one_for_each(all) {
            let at = std::thread::spawn(move || {
                stay_on(cpus[all - 1]);
                // SAFETY: takes nothing.
                (unsafe { libc::sched_getcpu() } as usize, cpus[all - 1], one_for_each(2))
            });
            let (found, wanted, more) = at.join().unwrap();
            assert_eq!((found, more), (wanted, None));
        }
    }
}
